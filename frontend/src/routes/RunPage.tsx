import { useEffect, useRef, useState, type ReactNode } from 'react';
import { Tabs } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';

import { panelsQuery } from '@/api/figures';
import { runQuery, type RunDetail } from '@/api/runs';
import { LinkedX, LinkedXContext } from '@/components/chart/linkedX';
import { Loading, PageProblem } from '@/components/feedback';
import { DEFAULT_SMOOTH, DEFAULT_X } from '@/lib/axes';
import { LearningCurve } from '@/features/curves/LearningCurve';
import { InternalsTab } from '@/features/curves/InternalsTab';
import { MetricCharts } from '@/features/curves/MetricCharts';
import { EpisodesTab } from '@/features/episodes/EpisodesTab';
import { LogTab } from '@/features/log/LogTab';
import { AgentNow } from '@/features/replay/AgentNow';
import { CheckpointsTab } from '@/features/run/CheckpointsTab';
import { EvaluationsTab } from '@/features/run/EvaluationsTab';
import { Notice } from '@/features/run/Notice';
import classes from '@/features/run/run.module.css';
import { RunHeader } from '@/features/run/RunHeader';
import { SettingsTab } from '@/features/run/SettingsTab';
import { defined } from '@/lib/defined';
import { formatScore } from '@/lib/format';
import { hasEnded } from '@/lib/states';
import type { runSearch } from './search';

const route = getRouteApi('/frame/runs/$runId');

type Search = ReturnType<typeof runSearch>;

const TABS = [
  { id: 'curves', label: 'Curves' },
  { id: 'episodes', label: 'Episodes' },
  { id: 'internals', label: 'Internals' },
  { id: 'evaluations', label: 'Evaluations' },
  { id: 'checkpoints', label: 'Checkpoints' },
  { id: 'settings', label: 'Settings' },
  { id: 'log', label: 'Log' },
  { id: 'system', label: 'System' },
] as const;

const SYSTEM: ReadonlySet<string> = new Set(['system', 'speed']);

const isOfSystem = (metric: string): boolean => SYSTEM.has(metric.split('/')[0] ?? '');

export default function RunPage() {
  const { runId } = route.useParams();
  const { data: run, error, refetch } = useQuery(runQuery(runId));
  useDocumentTitle(
    run ? `${run.name}: ${run.state}, ${formatScore(run.score)} · Callboard` : 'Run · Callboard',
  );
  if (run) return <Loaded run={run} key={runId} />;
  return (
    <div className="page" style={{ display: 'grid', gap: 16 }}>
      <h1 className="page-title">Run</h1>
      {error ? (
        <PageProblem error={error} onRetry={() => void refetch()} />
      ) : (
        <Loading label="Loading the run" lines={12} />
      )}
    </div>
  );
}

function Loaded({ run }: { run: RunDetail }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const x = search.x ?? DEFAULT_X;
  const smooth = search.smooth ?? DEFAULT_SMOOTH;
  const tab = search.tab ?? 'curves';
  const change = (to: { [K in keyof Search]?: Search[K] | undefined }, replace = false): void => {
    void navigate({ search: defined({ ...search, ...to }), replace, resetScroll: false });
  };

  const { data: panels } = useQuery(panelsQuery(run.id));
  // What is zoomed in agent steps is no range of hours.
  const [linked, setLinked] = useState(() => ({ x, charts: new LinkedX() }));
  if (linked.x !== x) setLinked({ x, charts: new LinkedX() });
  const tabs = TABS.filter(({ id }) => id !== 'internals' || id === tab || panels?.length);

  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const chosen = list.current?.querySelector<HTMLElement>('[aria-selected=true]');
    if (!list.current || !chosen) return;
    list.current.scrollLeft = chosen.offsetLeft - (list.current.clientWidth - chosen.offsetWidth) / 2;
  }, [tab, tabs.length]);

  const contents: Record<(typeof TABS)[number]['id'], () => ReactNode> = {
    curves: () => <MetricCharts run={run} x={x} smooth={smooth} only={(metric) => !isOfSystem(metric)} />,
    internals: () => panels && <InternalsTab run={run} panels={panels} x={x} smooth={smooth} />,
    episodes: () => (
      <EpisodesTab
        run={run.id}
        ended={run.episodes}
        best={search.best ?? false}
        onBest={(best) => change({ best: best || undefined })}
        picked={search.episode}
        onPick={(episode) => change({ episode })}
      />
    ),
    evaluations: () => <EvaluationsTab run={run} />,
    checkpoints: () => <CheckpointsTab run={run.id} />,
    settings: () => (
      <SettingsTab
        run={run}
        onlyChanged={search.changed ?? false}
        onOnlyChanged={(changed) => change({ changed: changed || undefined })}
      />
    ),
    log: () => (
      <LogTab
        run={run.id}
        find={search.find ?? ''}
        level={search.level ?? 'info'}
        onFind={(find) => change({ find: find || undefined }, true)}
        onLevel={(level) => change({ level: level === 'info' ? undefined : level })}
      />
    ),
    system: () => <MetricCharts run={run} x={x} smooth={smooth} only={isOfSystem} />,
  };

  return (
    <LinkedXContext value={linked.charts}>
      <div className="page" style={{ display: 'grid', gap: 16 }}>
        <RunHeader run={run} onDeleted={() => void navigate({ to: '/', search: {} })} />
        <Notice run={run} />
        <div className={classes.body}>
          <LearningCurve
            run={run}
            x={x}
            smooth={smooth}
            log={search.log ?? false}
            onLog={(log) => change({ log: log || undefined })}
            onX={(to) => change({ x: to === DEFAULT_X ? undefined : to })}
            onSmooth={(to) => change({ smooth: to === DEFAULT_SMOOTH ? undefined : to }, true)}
          />
          <AgentNow
            run={run.id}
            running={run.state === 'running'}
            ended={hasEnded(run.state)}
            picked={search.episode}
            onUnpick={() => change({ episode: undefined })}
          />
        </div>
        <Tabs
          value={tab}
          onChange={(value) => change({ tab: value === 'curves' ? undefined : (value as Search['tab']) })}
          keepMounted={false}
        >
          <Tabs.List mb={12} className={classes.tabs} ref={list}>
            {tabs.map(({ id, label }) => (
              <Tabs.Tab key={id} value={id}>
                {label}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {tabs.map(({ id }) => (
            <Tabs.Panel key={id} value={id}>
              {tab === id && contents[id]()}
            </Tabs.Panel>
          ))}
        </Tabs>
      </div>
    </LinkedXContext>
  );
}
