import type { ReactNode } from 'react';
import { Tabs } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';

import { runQuery, type RunDetail } from '@/api/runs';
import { Loading, Problem } from '@/components/feedback';
import { DEFAULT_SMOOTH, DEFAULT_X } from '@/lib/axes';
import { LearningCurve } from '@/features/curves/LearningCurve';
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
  { id: 'evaluations', label: 'Evaluations' },
  { id: 'checkpoints', label: 'Checkpoints' },
  { id: 'settings', label: 'Settings' },
  { id: 'log', label: 'Log' },
] as const;

export default function RunPage() {
  const { runId } = route.useParams();
  const { data: run, error, refetch } = useQuery(runQuery(runId));
  useDocumentTitle(
    run ? `${run.name}: ${run.state}, ${formatScore(run.score)} · Callboard` : 'Run · Callboard',
  );
  if (run) return <Loaded run={run} key={runId} />;
  return (
    <div className="page">
      {error ? (
        <Problem error={error} onRetry={() => void refetch()} />
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

  const panels: Record<(typeof TABS)[number]['id'], () => ReactNode> = {
    curves: () => <MetricCharts run={run} x={x} smooth={smooth} />,
    episodes: () => (
      <EpisodesTab run={run.id} picked={search.episode} onPick={(episode) => change({ episode })} />
    ),
    evaluations: () => <EvaluationsTab run={run} canEvaluate={run.agent_steps > 0} />,
    checkpoints: () => <CheckpointsTab run={run.id} />,
    settings: () => <SettingsTab run={run} />,
    log: () => (
      <LogTab
        run={run.id}
        find={search.find ?? ''}
        level={search.level ?? 'info'}
        onFind={(find) => change({ find: find || undefined }, true)}
        onLevel={(level) => change({ level: level === 'info' ? undefined : level })}
      />
    ),
  };

  return (
    <div className="page" style={{ display: 'grid', gap: 16 }}>
      <RunHeader run={run} onDeleted={() => void navigate({ to: '/', search: {} })} />
      <Notice run={run} />
      <div className={classes.body}>
        <LearningCurve
          run={run}
          x={x}
          smooth={smooth}
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
        <Tabs.List mb={12}>
          {TABS.map(({ id, label }) => (
            <Tabs.Tab key={id} value={id}>
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {TABS.map(({ id }) => (
          <Tabs.Panel key={id} value={id}>
            {tab === id && panels[id]()}
          </Tabs.Panel>
        ))}
      </Tabs>
    </div>
  );
}
