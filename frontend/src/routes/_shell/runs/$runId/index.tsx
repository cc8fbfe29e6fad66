import { isGone } from '@/api/problem';
import { Tabs } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useMemo, useRef, useState, type ReactNode, type RefObject } from 'react';
import { flushSync } from 'react-dom';
import { panelsQuery } from '@/api/figures';
import { mediaQuery } from '@/api/media';
import { runQuery, type RunDetail } from '@/api/runs';
import { CurveViewProvider } from '@/components/chart/CurveViewProvider';
import { Loading, PageProblem, titleOf } from '@/components/feedback';
import { DiagnosticsTab } from '@/features/curves/DiagnosticsTab';
import { KeyMetrics } from '@/features/curves/KeyMetrics';
import { LearningCurve } from '@/features/curves/LearningCurve';
import { MetricCharts } from '@/features/curves/MetricCharts';
import { AgentPanel } from '@/features/replay/AgentPanel';
import { FilmStrip } from '@/features/replay/FilmStrip';
import { SentVideosPanel } from '@/features/replay/SentVideosPanel';
import { ConfigTab } from '@/features/run/ConfigTab';
import { EpisodesTab } from '@/features/run/EpisodesTab';
import { EvaluationsTab } from '@/features/run/EvaluationsTab';
import { FullDisk, Notice, SilentHost } from '@/features/run/Notice';
import { ProvenanceTable } from '@/features/run/ProvenanceTable';
import classes from '@/features/run/run.module.css';
import { RunHeader } from '@/features/run/RunHeader';
import { ScriptProcesses } from '@/features/run/ScriptProcesses';
import { VideosTab } from '@/features/run/VideosTab';
import { formatScore } from '@/lib/format';
import { hasEnded, isExternal, stepsOf } from '@/lib/run';
import { checked, defined, flag, oneOf, type Unchecked, text } from '@/lib/search';
import { curveSearch, styles } from '@/components/run/search';

const RUN_TABS = [
  'curves',
  'episodes',
  'diagnostics',
  'media',
  'evaluations',
  'checkpoints',
  'config',
  'log',
  'system',
] as const;

const validateSearch = (search: Unchecked) =>
  checked({
    tab: oneOf(search.tab, RUN_TABS),
    ...curveSearch(search),
    episode: text(search.episode),
    /** The selected video of an external run. */
    video: text(search.video),
    level: oneOf(search.level, ['debug', 'info', 'warning', 'error'] as const),
    find: text(search.find),
    /** Whether episodes are listed best first. */
    best: flag(search.best),
    /** Whether only settings that differ from their defaults are listed. */
    changed: flag(search.changed),
    /** The agent step whose media are shown; by default the latest. */
    step: typeof search.step === 'number' && search.step >= 0 ? Math.floor(search.step) : undefined,
    /** Style of the run's lines, as on the page that links here. */
    style: styles(search.style)?.split(',')[0],
  });

export const Route = createFileRoute('/_shell/runs/$runId/')({ validateSearch, component: RunPage });

const ChangesCard = lazy(() => import('@/features/run/ChangesCard'));
const StepNotesDialog = lazy(() => import('@/features/run/StepNotesDialog'));
const MediaTab = lazy(() => import('@/features/media/MediaTab'));
const CheckpointsTab = lazy(() => import('@/features/run/CheckpointsTab'));
const LogTab = lazy(() => import('@/features/log/LogTab'));

type Search = ReturnType<typeof validateSearch>;

const TABS = [
  { id: 'curves', label: 'Curves' },
  { id: 'episodes', label: 'Episodes' },
  { id: 'diagnostics', label: 'Diagnostics' },
  { id: 'media', label: 'Media' },
  { id: 'evaluations', label: 'Evaluations' },
  { id: 'checkpoints', label: 'Checkpoints' },
  { id: 'config', label: 'Config' },
  { id: 'log', label: 'Log' },
  { id: 'system', label: 'System' },
] as const;

const SYSTEM_SECTIONS: ReadonlySet<string> = new Set(['system', 'speed']);

const isSystemMetric = (metric: string): boolean => SYSTEM_SECTIONS.has(metric.split('/')[0] ?? '');

/** Whether the run's learning curve will stay empty: then what is below it should be in view. */
const isWithoutReturns = (run: RunDetail): boolean =>
  hasEnded(run.state) && run.return_metric === null && run.episodes === 0;

function RunPage() {
  const { runId } = Route.useParams();
  const { data, error, refetch } = useQuery(runQuery(runId));
  const run = isGone(error) ? undefined : data;
  useDocumentTitle(
    run
      ? `${run.name}: ${run.state}, ${formatScore(run.score)} · Callboard`
      : `${titleOf(error, 'Run')} · Callboard`,
  );
  if (run) return <LoadedRun run={run} key={runId} />;
  return (
    <div className="page" style={{ display: 'grid', gap: 16 }}>
      <h1 className="page-title">{titleOf(error, 'Run')}</h1>
      {error ? (
        <PageProblem error={error} onRetry={() => void refetch()} />
      ) : (
        <Loading label="Loading the run" lines={12} />
      )}
    </div>
  );
}

function LoadedRun({ run }: { run: RunDetail }) {
  const search = Route.useSearch();
  const navigate = Route.useNavigate();
  const step = stepsOf(run).slice(0, -1);
  const tab = search.tab ?? 'curves';
  const change = (to: { [K in keyof Search]?: Search[K] | undefined }, replace = false): void => {
    void navigate({ search: defined({ ...search, ...to }), replace, resetScroll: false });
  };

  const styles = useMemo(() => (search.style ? { style: [Number(search.style)] } : {}), [search.style]);
  const { data: panels } = useQuery(panelsQuery(run.id));
  const { data: media } = useQuery(mediaQuery(run.id));
  const isEmpty = {
    diagnostics: !panels?.length,
    media: !media || (media.items.length === 0 && media.n_not_kept === 0),
  };
  const tabs = TABS.filter(({ id }) => id === tab || !(id in isEmpty && isEmpty[id as keyof typeof isEmpty]));

  const root = useRef<HTMLDivElement>(null);
  // An address with an episode shows it.
  const [landsOnTab] = useState(
    search.tab !== undefined && search.episode === undefined && search.video === undefined,
  );
  const isLanding = useLanding(root, landsOnTab);
  const choose = (value: Search['tab'] | 'curves'): void => {
    // From the middle of one tab to the start of another.
    if (root.current && root.current.getBoundingClientRect().top < 0) {
      root.current.scrollIntoView({ block: 'start' });
    }
    change({ tab: value === 'curves' ? undefined : value });
  };

  const agent = useRef<HTMLElement>(null);
  /** Plays an episode, or a sent video, where one can see it. */
  const watch = (id: string): void => {
    change(isExternal(run) ? { video: id } : { episode: id });
    agent.current?.scrollIntoView({ block: 'nearest' });
    agent.current?.focus({ preventScroll: true });
  };

  /** The step that a new note is about; null while the notes are closed, undefined for the latest. */
  const [noted, setNoted] = useState<number | null | undefined>(null);

  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const selected = list.current?.querySelector<HTMLElement>('[aria-selected=true]');
    if (!list.current || !selected) return;
    list.current.scrollLeft = selected.offsetLeft - (list.current.clientWidth - selected.offsetWidth) / 2;
  }, [tab, tabs.length]);

  const contents: Record<(typeof TABS)[number]['id'], () => ReactNode> = {
    curves: () => (
      <>
        <KeyMetrics run={run} />
        <MetricCharts run={run} filter={(metric) => !isSystemMetric(metric)} />
      </>
    ),
    diagnostics: () => panels && <DiagnosticsTab run={run} panels={panels} />,
    episodes: () =>
      isExternal(run) ? (
        <VideosTab run={run.id} step={step} selected={search.video} onSelect={watch} />
      ) : (
        <EpisodesTab
          run={run.id}
          nEpisodes={run.episodes}
          best={search.best ?? false}
          onBest={(best) => change({ best: best || undefined })}
          selected={search.episode}
          onSelect={watch}
        />
      ),
    media: () => (
      <Suspense fallback={<Loading label="Loading histograms and images" lines={12} />}>
        <MediaTab run={run} at={search.step} onAt={(to) => change({ step: to }, true)} onWatch={watch} />
      </Suspense>
    ),
    evaluations: () => <EvaluationsTab run={run} />,
    checkpoints: () => (
      <Suspense fallback={<Loading label="Loading the checkpoints" />}>
        <CheckpointsTab run={run} />
      </Suspense>
    ),
    config: () => (
      <ConfigTab
        run={run}
        onlyChanged={search.changed ?? false}
        onOnlyChanged={(changed) => change({ changed: changed || undefined })}
      />
    ),
    log: () => (
      <Suspense fallback={<Loading label="Loading the log" lines={12} />}>
        <LogTab
          run={run.id}
          find={search.find ?? ''}
          level={search.level ?? 'info'}
          onFind={(find) => change({ find: find || undefined }, true)}
          onLevel={(level) => change({ level: level === 'info' ? undefined : level })}
        />
      </Suspense>
    ),
    system: () => (
      <MetricCharts
        run={run}
        filter={isSystemMetric}
        below={isExternal(run) ? <ScriptProcesses run={run} /> : <ProvenanceTable attempts={run.attempts} />}
      />
    ),
  };

  return (
    <CurveViewProvider
      search={search}
      runs={[run]}
      onSearch={(to) => change(to, to.x === search.x)}
      styles={styles}
    >
      <div className="page" style={{ display: 'grid', gap: 16 }}>
        <div className={classes.above} data-landing={isLanding || undefined}>
          <RunHeader run={run} onDeleted={() => void navigate({ to: '/', search: {} })} />
          <FullDisk run={run} />
          <SilentHost run={run} />
          <Notice run={run} />
          <div className={classes.body} data-short={isWithoutReturns(run) || undefined}>
            <LearningCurve
              run={run}
              onNotes={() => setNoted(undefined)}
              below={(chart) =>
                isWithoutReturns(run) ? null : (
                  <FilmStrip
                    run={run.id}
                    of={isExternal(run) ? 'videos' : 'episodes'}
                    step={step}
                    chart={chart}
                    selected={isExternal(run) ? search.video : search.episode}
                    onSelect={watch}
                  />
                )
              }
            />
            {isExternal(run) ? (
              <SentVideosPanel
                ref={agent}
                run={run.id}
                step={step}
                selected={search.video}
                onDeselect={() => change({ video: undefined })}
                onShow={() => {
                  choose('episodes');
                  root.current?.scrollIntoView({ block: 'start' });
                }}
              />
            ) : (
              <AgentPanel
                ref={agent}
                run={run.id}
                // The live view connects while the engine starts: nothing is missed.
                running={run.state === 'starting' || run.state === 'running'}
                ended={hasEnded(run.state)}
                selected={search.episode}
                onDeselect={() => change({ episode: undefined })}
              />
            )}
          </div>
          <Suspense>
            <ChangesCard run={run} selected={search.episode} onWatch={watch} onNote={setNoted} />
          </Suspense>
        </div>
        {noted !== null && (
          <Suspense>
            <StepNotesDialog run={run} step={noted} onClose={() => setNoted(null)} />
          </Suspense>
        )}
        <Tabs
          ref={root}
          className={classes.tabbed}
          value={tab}
          onChange={(value) => choose(value as Search['tab'])}
          keepMounted={false}
        >
          <Tabs.List mb={12} className={classes.tabs} ref={list}>
            {tabs.map(({ id, label }) => (
              <Tabs.Tab key={id} value={id}>
                {id === 'episodes' && isExternal(run) ? 'Videos' : label}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {tabs.map(({ id }) => (
            <Tabs.Panel key={id} value={id} className={classes.tabPanel}>
              {tab === id && contents[id]()}
            </Tabs.Panel>
          ))}
        </Tabs>
      </div>
    </CurveViewProvider>
  );
}

/** What is above may still load for this long. */
const SETTLING_MS = 5000;
const INPUTS = ['wheel', 'touchstart', 'pointerdown', 'keydown'] as const;

/**
 * Scrolls to an element when the page opens. Returns whether what is above must keep its height, however much of it is
 * loaded: until the user scrolls or types, for a few seconds at most.
 */
function useLanding(target: RefObject<HTMLElement | null>, wanted: boolean): boolean {
  const [isLanding, setLanding] = useState(wanted);
  useEffect(() => {
    if (!wanted) return;
    const observer = new ResizeObserver(() => target.current?.scrollIntoView({ block: 'start' }));
    observer.observe(document.body);
    const leave = (): void => {
      observer.disconnect();
      clearTimeout(timer);
      for (const input of INPUTS) removeEventListener(input, stop);
    };
    const stop = (): void => {
      leave();
      const top = (): number => target.current?.getBoundingClientRect().top ?? 0;
      const before = top();
      flushSync(() => setLanding(false));
      // In the same frame, so that nothing is seen to move.
      scrollBy(0, top() - before);
    };
    const timer = setTimeout(stop, SETTLING_MS);
    for (const input of INPUTS) addEventListener(input, stop, { passive: true });
    return leave;
  }, [target, wanted]);
  return isLanding;
}
