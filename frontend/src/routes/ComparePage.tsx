import { SegmentedControl } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useMemo, useRef } from 'react';
import { chosenRunsQuery } from '@/api/runs';
import { CurveControls } from '@/components/chart/CurveControls';
import { Empty, Problem } from '@/components/feedback';
import { ButtonLink } from '@/components/links';
import { CompareChart } from '@/features/compare/CompareChart';
import classes from '@/features/compare/compare.module.css';
import { RunChips } from '@/features/compare/RunChips';
import { RunShelf } from '@/features/compare/RunShelf';
import { Statistics } from '@/features/compare/Statistics';
import { DifferencesTable, ScoresTable } from '@/features/compare/Tables';
import { SideBySide } from '@/features/replay/SideBySide';
import { DEFAULT_SMOOTH, DEFAULT_X } from '@/lib/axes';
import { defined } from '@/lib/defined';
import { useSettled } from '@/lib/settled';
import type { compareSearch } from './search';

const route = getRouteApi('/frame/compare');

type Search = ReturnType<typeof compareSearch>;

export default function ComparePage() {
  useDocumentTitle('Compare · Callboard');
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const finder = useRef<HTMLInputElement>(null);
  const hidden = useMemo(() => new Set(search.hidden?.split(',')), [search.hidden]);
  const ids = useMemo(() => search.runs?.split(',').filter(Boolean) ?? [], [search.runs]);
  const { data, error, refetch, isPlaceholderData } = useInfiniteQuery(chosenRunsQuery(ids));
  const runs = useMemo(() => {
    const found = new Map(data?.pages[0]?.items.map((run) => [run.id, run]));
    return ids.flatMap((id) => found.get(id) ?? []);
  }, [data, ids]);
  const told = data !== undefined && !isPlaceholderData;
  const missing = useMemo(() => {
    if (!told) return [];
    return ids.filter((id) => !runs.some((run) => run.id === id));
  }, [told, ids, runs]);
  // What was gone a moment ago is not asked for again while the next answer is on its way.
  const gone = useSettled(missing, told);
  const there = useMemo(() => ids.filter((id) => !gone.includes(id)), [ids, gone]);
  const x = search.x ?? DEFAULT_X;
  const smooth = search.smooth ?? DEFAULT_SMOOTH;
  const grouped = search.group === 'seed';

  const change = (to: { [K in keyof Search]?: Search[K] | undefined }, replace = false): void => {
    void navigate({ search: defined({ ...search, ...to }), replace, resetScroll: false });
  };
  const setRuns = (next: readonly string[]): void =>
    change({ runs: [...new Set(next)].join(',') || undefined });
  const add = (id: string): void => setRuns([...ids, id]);
  const remove = (id: string): void => setRuns(ids.filter((each) => each !== id));
  const hide = (id: string, away: boolean): void => {
    const next = new Set(hidden);
    if (away) next.add(id);
    else next.delete(id);
    change({ hidden: [...next].join(',') || undefined }, true);
  };

  return (
    <div className="page" style={{ display: 'grid', gap: 16 }}>
      <h1 className="page-title">Compare</h1>
      <div className={`panel ${classes.runs}`}>
        <RunChips
          runs={runs}
          ids={there}
          gone={gone.filter((id) => ids.includes(id))}
          grouped={grouped}
          hidden={hidden}
          onHide={hide}
          onAdd={add}
          onRemove={remove}
          finder={finder}
        />
        <RunShelf compared={ids} onAdd={add} onRemove={remove} finder={finder} />
      </div>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {there.length === 0 && (
        <div className="panel">
          <Empty action={<ButtonLink to="/">To the runs</ButtonLink>}>
            Nothing to compare yet: drag runs up there, or select them in the list of runs and press Compare.
          </Empty>
        </div>
      )}
      {there.length > 0 && (
        <CompareChart
          runs={there}
          x={x}
          smooth={smooth}
          grouped={grouped}
          hidden={hidden}
          log={search.log ?? false}
          onLog={(log) => change({ log: log || undefined })}
          controls={
            <>
              <SegmentedControl
                size="xs"
                aria-label="Curves of"
                value={grouped ? 'seed' : 'run'}
                data={[
                  { value: 'run', label: 'Each run' },
                  { value: 'seed', label: 'Means over seeds' },
                ]}
                onChange={(value) => change({ group: value === 'seed' ? 'seed' : undefined })}
              />
              <CurveControls
                x={x}
                smooth={smooth}
                onX={(to) => change({ x: to === DEFAULT_X ? undefined : to })}
                onSmooth={(to) => change({ smooth: to === DEFAULT_SMOOTH ? undefined : to }, true)}
              />
            </>
          }
        />
      )}
      {runs.length > 0 && (
        <>
          <Statistics
            runs={runs}
            grouped={grouped}
            view={{
              score: search.score ?? 'training',
              at: search.at ?? 'common',
              threshold: search.threshold,
            }}
            onView={({ score, at, threshold }) =>
              change({
                score: score === 'training' ? undefined : score,
                at: at === 'common' ? undefined : at,
                threshold,
              })
            }
          />
          <section style={{ display: 'grid', gap: 8, minWidth: 0 }}>
            <h2 className="section-title">Each run</h2>
            <ScoresTable runs={runs} />
          </section>
          <section style={{ display: 'grid', gap: 8, minWidth: 0 }}>
            <h2 className="section-title">What differs in their settings</h2>
            <DifferencesTable runs={runs} />
          </section>
          <section style={{ display: 'grid', gap: 8, minWidth: 0 }}>
            <h2 className="section-title">Playing side by side</h2>
            <SideBySide runs={runs} />
          </section>
        </>
      )}
    </div>
  );
}
