import { ActionIcon, Menu } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import { useRef } from 'react';

export type MoreItem = {
  label: string;
  /** Why it cannot be chosen. */
  unavailable: string | undefined;
  /** Gets the button of the menu, for the focus to come back to. */
  onClick: (opener: HTMLElement | null) => void;
};

/** The actions of a page that have no button of their own, such as destructive ones. */
export function MoreMenu({ of, items }: { of: string; items: readonly MoreItem[] }) {
  const target = useRef<HTMLButtonElement>(null);
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon ref={target} variant="default" size={28} aria-label={`More actions for ${of}`}>
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {items.map(({ label, unavailable, onClick }) => (
          <Menu.Item
            key={label}
            disabled={unavailable !== undefined}
            title={unavailable}
            onClick={() => onClick(target.current)}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
