import { Button, NativeSelect, Switch, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import { Empty, Loading, Problem } from '@/components/feedback';
import { formatCount, formatExact, plural } from '@/lib/format';
import { usePrinting } from '@/lib/hooks';
import { printed } from '@/lib/printed';
import { loadOlder, logQuery } from './lines';
import classes from './log.module.css';

export type Level = 'debug' | 'info' | 'warning' | 'error';
const LEVELS: readonly Level[] = ['debug', 'info', 'warning', 'error'];
const MAX_PRINTED = 1000;

type Props = {
  run: string;
  find: string;
  level: Level;
  onFind: (find: string) => void;
  onLevel: (level: Level) => void;
};

/** The run's log, which follows new lines until scrolled up. */
export default function LogTab({ run, find, level, onFind, onLevel }: Props) {
  const client = useQueryClient();
  const [typed, setTyped] = useState(find);
  const [shown, setShown] = useState(find);
  if (shown !== find) {
    // By a link to the log, or back and forward: not while more is typed than was searched for.
    setShown(find);
    if (typed.trim() === shown) setTyped(find);
  }
  const [following, setFollowing] = useState(true);
  const search = useDebouncedCallback(onFind, 300);
  const { data, error, refetch } = useQuery(logQuery(client, run, find));
  const older = useMutation({ mutationFn: () => loadOlder(client, run, find) });
  const scroller = useRef<HTMLDivElement>(null);
  const before = useRef({ top: 0, height: 0 });
  const minimum = LEVELS.indexOf(level);
  const lines = useMemo(
    () =>
      data?.items.filter(
        (line) => LEVELS.indexOf(line.level as Level) >= minimum || line.level === 'critical',
      ) ?? [],
    [data, minimum],
  );
  // Not memoisable by the React compiler; its functions stay within this component.
  // eslint-disable-next-line react-hooks/incompatible-library
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 20,
    getItemKey: (index) => lines[index]?.id ?? index,
    overscan: 20,
  });

  const printing = usePrinting();
  const rendered = printing
    ? lines.slice(-MAX_PRINTED).map(({ id }, index, { length }) => ({
        index: lines.length - length + index,
        key: id,
        start: 0,
      }))
    : virtual.getVirtualItems();

  useEffect(() => {
    if (following && lines.length > 0) virtual.scrollToIndex(lines.length - 1, { align: 'end' });
  }, [following, lines, virtual]);

  return (
    <>
      <div className={classes.tools}>
        <TextInput
          type="search"
          aria-label="Search the log"
          placeholder="Search the log"
          value={typed}
          onChange={({ currentTarget }) => {
            setTyped(currentTarget.value);
            search(currentTarget.value.trim());
          }}
        />
        <NativeSelect
          aria-label="Minimum level"
          value={level}
          data={LEVELS.map((minimum) => ({
            value: minimum,
            label: minimum === 'debug' ? 'All levels' : `${minimum} and above`,
          }))}
          onChange={({ currentTarget }) => onLevel(currentTarget.value as Level)}
        />
        <Switch
          size="xs"
          label="Follow"
          checked={following}
          onChange={({ currentTarget }) => setFollowing(currentTarget.checked)}
        />
        <span className="muted">{data ? plural(lines.length, 'line') : ''}</span>
        {data?.older && (
          <Button variant="default" loading={older.isPending} onClick={() => older.mutate()}>
            Load older lines
          </Button>
        )}
      </div>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {older.error && <Problem error={older.error} />}
      {!data && !error && <Loading label="Loading the log" lines={10} />}
      {data && lines.length === 0 && (
        <Empty>
          {data.older
            ? `None of the latest ${plural(data.items.length, 'line')} matches: load older lines.`
            : find || level !== 'debug'
              ? 'No matching lines.'
              : 'No log entries yet.'}
        </Empty>
      )}
      {lines.length > 0 && (
        <div className="panel">
          <div className={`${classes.columns} ${classes.heads}`} aria-hidden="true">
            <span>Time</span>
            <span className="right">Agent steps</span>
            <span>Level</span>
            <span>Message</span>
          </div>
          <div
            ref={scroller}
            className={classes.log}
            tabIndex={0}
            role="log"
            aria-label="Log"
            aria-live="off"
            onScroll={({ currentTarget: { scrollTop: top, scrollHeight: height } }) => {
              // By wheel, key, finger or scroll bar. While lines are added or measured, the height changes.
              if (height === before.current.height && top < before.current.top) setFollowing(false);
              before.current = { top, height };
            }}
          >
            <div className={classes.lines} style={{ height: virtual.getTotalSize(), position: 'relative' }}>
              {rendered.map(({ index, key, start }) => {
                const line = lines[index];
                return (
                  line && (
                    <div
                      key={key}
                      ref={virtual.measureElement}
                      data-index={index}
                      data-level={line.level}
                      className={`${classes.columns} ${classes.line}`}
                      style={{ transform: `translateY(${start}px)` }}
                    >
                      <time dateTime={line.time} title={formatExact(line.time)}>
                        {new Date(line.time).toLocaleTimeString('en-GB')}
                      </time>
                      <span className="right">{formatCount(line.agent_steps)}</span>
                      <span>{line.level}</span>
                      <span className={classes.message}>{printed(line.message)}</span>
                    </div>
                  )
                );
              })}
            </div>
          </div>
        </div>
      )}
    </>
  );
}
