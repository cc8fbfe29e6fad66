import { ActionIcon, Menu } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import { useRef, useState } from 'react';
import type { Run } from '@/api/runs';
import { MenuLink } from '@/components/controls';
import { useDenied } from '@/components/permission';
import { ActionDialog } from './ActionDialog';
import { ELSEWHERE, isExternal, runsHere, whyNotForked } from '@/lib/run';
import { actionsFor, type Action } from './actions';

type Props = {
  run: Run;
  /** What the run is called in the view; default: its name. */
  label?: string;
  tabIndex?: number;
};

/** The menu of a run’s actions. */
export function ActionMenu({ run, label = run.name, tabIndex }: Props) {
  const denied = useDenied();
  const [action, setAction] = useState<Action | null>(null);
  const external = isExternal(run);
  const button = useRef<HTMLButtonElement>(null);
  const close = (): void => {
    setAction(null);
    button.current?.focus();
  };
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon
            ref={button}
            variant="subtle"
            color="gray"
            {...(tabIndex !== undefined && { tabIndex })}
            aria-label={`Actions for ${label}`}
          >
            <IconDots size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {actionsFor(run).map((offered) => (
            <Menu.Item
              key={offered.id}
              {...(offered.danger && (denied ?? offered.unavailable) === undefined
                ? { style: { color: 'var(--failed)' } }
                : {})}
              disabled={(denied ?? offered.unavailable) !== undefined}
              title={denied ?? offered.unavailable}
              onClick={() => setAction(offered)}
            >
              {offered.label}
            </Menu.Item>
          ))}
          {denied !== undefined && <Menu.Label>{denied}</Menu.Label>}
          {!runsHere(run) && <Menu.Label>{ELSEWHERE.resume}</Menu.Label>}
          <MenuLink to="/new" search={{ from: run.id }} disabled={external || denied !== undefined}>
            Clone
          </MenuLink>
          {run.agent_steps > 0 && (
            <MenuLink
              to="/new"
              search={{ fork: run.id }}
              disabled={denied !== undefined || whyNotForked(run) !== undefined}
            >
              Fork
            </MenuLink>
          )}
        </Menu.Dropdown>
      </Menu>
      {action && <ActionDialog run={run} label={label} action={action} onClose={close} />}
    </>
  );
}
