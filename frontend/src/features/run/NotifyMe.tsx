import { ActionIcon, Menu } from '@mantine/core';
import { IconBell, IconBellFilled } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { alertActions, runRulesQuery, useAlertMutation } from '@/api/alerts';
import { asProblem } from '@/api/problem';
import type { RunDetail } from '@/api/runs';
import { MenuLink } from '@/components/controls';
import { showToast } from '@/components/toasts';

const KINDS = ['finished', 'failed', 'lost'] as const;

const onError = (error: unknown): void => showToast(`Nothing was changed: ${asProblem(error).message}`);

/** Creates a rule about a run in two clicks, or removes those that there are. */
export function NotifyMe({ run }: { run: RunDetail }) {
  const [opened, setOpened] = useState(false);
  const [wasOpened, setWasOpened] = useState(false);
  const { data: rules } = useQuery({ ...runRulesQuery(run.id), enabled: wasOpened });
  const create = useAlertMutation(() => alertActions.createRule({ kinds: [...KINDS], run_id: run.id }));
  const remove = useAlertMutation((ids: readonly string[]) => Promise.all(ids.map(alertActions.deleteRule)));
  const isOn = rules !== undefined && rules.length > 0;
  const Icon = isOn ? IconBellFilled : IconBell;
  return (
    <Menu
      position="bottom-end"
      withinPortal
      opened={opened}
      onChange={(next) => {
        setOpened(next);
        setWasOpened(true);
      }}
    >
      <Menu.Target>
        <ActionIcon variant="default" size={28} aria-label={`Notify me of ${run.name}`} title="Notify me">
          <Icon size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {isOn ? (
          <Menu.Item
            onClick={() =>
              remove.mutate(
                rules.map(({ id }) => id),
                { onSuccess: () => showToast('You get no more alerts of rules about this run.'), onError },
              )
            }
          >
            Stop notifying me
          </Menu.Item>
        ) : (
          <Menu.Item
            onClick={() =>
              create.mutate(undefined, {
                onSuccess: () =>
                  showToast('You get an alert when the run has finished or failed, or is lost.'),
                onError,
              })
            }
          >
            When it has finished or failed, or is lost
          </Menu.Item>
        )}
        <MenuLink to="/alerts" search={{ run: run.id }}>
          More rules…
        </MenuLink>
      </Menu.Dropdown>
    </Menu>
  );
}
