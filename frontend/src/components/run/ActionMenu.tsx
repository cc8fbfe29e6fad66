import { ActionIcon, Menu } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import { useRef, useState } from 'react';
import type { Run } from '@/api/runs';
import { MenuLink } from '@/components/links';
import { ActionDialog } from './ActionDialog';
import { actionsFor, type Action } from './actions';

/** What may be done to a run, behind three dots. */
export function ActionMenu({ run }: { run: Run }) {
  const [action, setAction] = useState<Action | null>(null);
  const dots = useRef<HTMLButtonElement>(null);
  const close = (): void => {
    setAction(null);
    dots.current?.focus();
  };
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon ref={dots} variant="subtle" color="gray" aria-label={`Actions for ${run.name}`}>
            <IconDots size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {actionsFor(run).map((each) => (
            <Menu.Item
              key={each.id}
              {...(each.danger ? { style: { color: 'var(--failed)' } } : {})}
              onClick={() => setAction(each)}
            >
              {each.label}
            </Menu.Item>
          ))}
          <MenuLink to="/new" search={{ from: run.id }}>
            Clone
          </MenuLink>
          {run.agent_steps > 0 && (
            <MenuLink to="/new" search={{ fork: run.id }}>
              Fork
            </MenuLink>
          )}
        </Menu.Dropdown>
      </Menu>
      {action && <ActionDialog run={run} action={action} onClose={close} />}
    </>
  );
}
