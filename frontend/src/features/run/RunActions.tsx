import { ActionIcon, Menu } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import { useRef, useState } from 'react';
import type { RunDetail } from '@/api/runs';
import { MenuLink } from '@/components/controls';
import { useDownload } from '@/components/download';
import { PermittedButton } from '@/components/permission';
import { ActionDialog } from '@/components/run/ActionDialog';
import { actionsFor, type Action } from '@/components/run/actions';
import { ExportItems } from '@/components/run/ExportMenu';
import { ELSEWHERE, isExternal, runsHere, whyNotForked } from '@/lib/run';
import { NotifyMe } from './NotifyMe';
import classes from './run.module.css';

type Props = { run: RunDetail; denied: string | undefined; onDeleted: () => void };

const STOPPING: Action = {
  id: 'stop',
  label: 'Stop and keep a checkpoint',
  description: '',
  danger: false,
  unavailable: 'It is stopping.',
};

/** The button of the action that a run's state calls for; the same place in every state. */
const primaryOf = (actions: readonly Action[]): Action => {
  const [first] = actions;
  return first && !first.danger ? first : STOPPING;
};

/** The primary action as a button, and a menu with the others. */
export function RunActions({ run, denied, onDeleted }: Props) {
  const [action, setAction] = useState<Action | null>(null);
  const opener = useRef<HTMLElement>(null);
  const more = useRef<HTMLButtonElement>(null);
  const download = useDownload();
  const actions = actionsFor(run);
  const primary = primaryOf(actions);
  const external = isExternal(run);
  // There is no button for what only the run's script can do, or for what the demo run cannot do.
  const isOffered = !((!runsHere(run) || run.demo) && primary.id === 'resume');
  const others = actions.filter((action) => (action !== primary || !isOffered) && action.id !== 'delete');
  const remove = actions.find(({ id }) => id === 'delete');
  const untrained = run.agent_steps > 0 ? undefined : 'It has not trained yet.';
  const ask = (asked: Action, from: HTMLElement | null): void => {
    opener.current = from;
    setAction(asked);
  };
  const close = (): void => {
    setAction(null);
    opener.current?.focus();
  };
  const item = (action: Action) => {
    const reason = denied ?? action.unavailable;
    return (
      <Menu.Item
        key={action.id}
        disabled={reason !== undefined}
        title={reason}
        onClick={() => ask(action, more.current)}
      >
        {action.label}
      </Menu.Item>
    );
  };
  const link = (label: string, search: object, reason: string | undefined) =>
    reason === undefined ? (
      <MenuLink to="/new" search={search}>
        {label}
      </MenuLink>
    ) : (
      <Menu.Item disabled title={reason}>
        {label}
      </Menu.Item>
    );
  return (
    <div className={classes.actions}>
      {isOffered && (
        <PermittedButton
          denied={denied ?? primary.unavailable}
          aria-label={primary.label}
          className={classes.primary}
          onClick={({ currentTarget }) => ask(primary, currentTarget)}
        >
          {primary.label.replace(' and keep a checkpoint', '')}
        </PermittedButton>
      )}
      <NotifyMe run={run} />
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon ref={more} variant="default" size={28} aria-label={`More actions for ${run.name}`}>
            <IconDots size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {denied !== undefined && <Menu.Label>{denied}</Menu.Label>}
          {others.map(item)}
          {link('Clone', { from: run.id }, denied ?? (external ? ELSEWHERE.clone : undefined))}
          {link('Fork', { fork: run.id }, denied ?? whyNotForked(run))}
          <Menu.Divider />
          <ExportItems target={{ ids: [run.id] }} onClick={download.onClick} unavailable={untrained} />
          {remove && (
            <>
              <Menu.Divider />
              {item(remove)}
            </>
          )}
        </Menu.Dropdown>
      </Menu>
      {download.problem}
      {action && <ActionDialog run={run} action={action} onClose={close} onDeleted={onDeleted} />}
    </div>
  );
}
