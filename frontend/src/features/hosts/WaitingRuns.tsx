import { ActionIcon, Tooltip } from '@mantine/core';
import { IconArrowBarToUp, IconGripVertical, IconX } from '@tabler/icons-react';
import { useState, type KeyboardEvent } from 'react';
import { useHostMutation, useQueueMove, type HostPage } from '@/api/hosts';
import { useNames } from '@/api/names';
import { runActions } from '@/api/runs';
import { Problem } from '@/components/feedback';
import { useDenied } from '@/components/permission';
import { RunLink } from '@/components/run/RunLink';
import { ScrollPanel } from '@/components/ScrollPanel';
import { RelativeTime } from '@/components/text';
import { showToast } from '@/components/toasts';
import { plural } from '@/lib/format';
import classes from './hosts.module.css';

const DRAGGED = 'application/x-callboard-run';

/** The queued runs in the order in which hosts claim them, and why each waits; they can be moved and cancelled. */
export function WaitingRuns({ hosts }: { hosts: HostPage }) {
  const denied = useDenied();
  const move = useQueueMove();
  const cancel = useHostMutation((id: string) => runActions.stop(id));
  const [over, setOver] = useState<string | null>(null);
  const queue = hosts.waiting_runs;
  const names = useNames(queue);
  const total = Object.values(hosts.waiting).reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const more = total - queue.length;
  /** Moves a run to the place of another one. */
  const moveTo = (id: string, to: number): void => {
    const from = queue.findIndex((run) => run.id === id);
    if (from < 0 || to < 0 || to >= queue.length || from === to) return;
    const before = from < to ? queue[to] : queue[to - 1];
    move.mutate({ id, after: before?.id ?? null });
  };
  const onKey = (event: KeyboardEvent, id: string, at: number): void => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    moveTo(id, at + by);
  };
  const cancelRun = (id: string, name: string): void =>
    cancel.mutate(id, {
      onSuccess: () => showToast(`Cancelled ${name}.`, () => runActions.resume(id, {})),
    });
  const problem = move.error ?? cancel.error;
  return (
    <section aria-label="Waiting runs">
      <h2 className="section-title" style={{ marginBottom: 8 }}>
        {plural(total, 'run is waiting', 'runs are waiting')}
        {names.shared && <span className="muted">{` · ${names.shared}`}</span>}
      </h2>
      {problem && <Problem error={problem} />}
      <ScrollPanel label="Queue">
        <table className={`grid ${classes.queue}`}>
          <thead>
            <tr>
              <th className="right">Position</th>
              <th>Run</th>
              <th className="right wide">Priority</th>
              <th className="wide">Queue</th>
              <th>Reason</th>
              <th>Queued</th>
              {denied === undefined && (
                <th className="actions">
                  <span className="visually-hidden">Actions</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {queue.map((run, k) => (
              <tr
                key={run.id}
                className={classes.waiting}
                data-over={over === run.id || undefined}
                draggable={denied === undefined}
                onDragStart={({ dataTransfer }) => {
                  dataTransfer.setData(DRAGGED, run.id);
                  dataTransfer.effectAllowed = 'move';
                }}
                onDragOver={(event) => {
                  if (!event.dataTransfer.types.includes(DRAGGED)) return;
                  event.preventDefault();
                  setOver(run.id);
                }}
                onDragEnd={() => setOver(null)}
                onDrop={(event) => {
                  setOver(null);
                  moveTo(event.dataTransfer.getData(DRAGGED), k);
                }}
              >
                <td className="right num">{k + 1}</td>
                <td className={classes.waitingName}>
                  <RunLink run={run} names={names} />
                </td>
                <td className="right num wide">{run.priority}</td>
                <td className="num nowrap wide">
                  {run.queue}
                  {run.wanted_host !== null && ` on ${run.wanted_host}`}
                </td>
                <td className={classes.waitingReason}>{run.reason}</td>
                <td>
                  <RelativeTime at={run.created_at} />
                </td>
                {denied === undefined && (
                  <td className="actions">
                    <span className={classes.queueActions}>
                      <Tooltip label="First in the queue">
                        <ActionIcon
                          variant="subtle"
                          color="gray"
                          aria-label={`Move ${names.label(run)} to the front`}
                          {...(k === 0 ? { disabled: true, bg: 'transparent' } : {})}
                          onClick={() => moveTo(run.id, 0)}
                        >
                          <IconArrowBarToUp size={16} aria-hidden="true" />
                        </ActionIcon>
                      </Tooltip>
                      <Tooltip label="Drag, or press an arrow key, to move">
                        <ActionIcon
                          variant="subtle"
                          color="gray"
                          aria-label={`Move ${names.label(run)}: press an arrow key`}
                          style={{ cursor: 'grab' }}
                          onKeyDown={(event) => onKey(event, run.id, k)}
                        >
                          <IconGripVertical size={16} aria-hidden="true" />
                        </ActionIcon>
                      </Tooltip>
                      <Tooltip label="Cancel: it is not started">
                        <ActionIcon
                          variant="subtle"
                          color="gray"
                          aria-label={`Cancel ${names.label(run)}`}
                          onClick={() => cancelRun(run.id, names.label(run))}
                        >
                          <IconX size={16} aria-hidden="true" />
                        </ActionIcon>
                      </Tooltip>
                    </span>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollPanel>
      {more > 0 && (
        <p className="muted" style={{ margin: '4px 0 0' }}>
          and {plural(more, 'more run')}
        </p>
      )}
    </section>
  );
}
