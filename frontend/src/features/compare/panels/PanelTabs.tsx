import { ActionIcon, Menu } from '@mantine/core';
import { IconDots, IconPlus } from '@tabler/icons-react';
import type { KeyboardEvent } from 'react';
import classes from './panels.module.css';

type Props = {
  tabs: readonly string[];
  /** The open tab; undefined for the first, which has no name. */
  current: string | undefined;
  onTab: (tab: string | undefined) => void;
  onNew: () => void;
  onRename: () => void;
  onRemove: () => void;
};

export const FIRST_TAB = 'Overview';

/** The tabs of panels; the arrow keys move between them. */
export function PanelTabs({ tabs, current, onTab, onNew, onRename, onRemove }: Props) {
  const all = [undefined, ...tabs];
  const onKey = (event: KeyboardEvent<HTMLElement>): void => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const at = (all.indexOf(current) + by + all.length) % all.length;
    onTab(all[at]);
    event.currentTarget.querySelectorAll<HTMLElement>('[role=tab]')[at]?.focus();
  };
  return (
    <div className={classes.tabs}>
      <div role="tablist" aria-label="Panels" className={classes.tabs} onKeyDown={onKey}>
        {all.map((tab) => (
          <button
            key={tab ?? ''}
            type="button"
            role="tab"
            aria-selected={tab === current}
            tabIndex={tab === current ? 0 : -1}
            onClick={() => onTab(tab)}
          >
            {tab ?? FIRST_TAB}
          </button>
        ))}
      </div>
      <ActionIcon variant="subtle" color="gray" aria-label="New tab" title="New tab" onClick={onNew}>
        <IconPlus size={16} />
      </ActionIcon>
      {current !== undefined && (
        <Menu position="bottom-start" withinPortal>
          <Menu.Target>
            <ActionIcon variant="subtle" color="gray" aria-label={`Options for the tab ${current}`}>
              <IconDots size={16} />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item onClick={onRename}>Rename…</Menu.Item>
            <Menu.Item onClick={onRemove}>Remove, and keep its panels in {FIRST_TAB}</Menu.Item>
          </Menu.Dropdown>
        </Menu>
      )}
    </div>
  );
}
