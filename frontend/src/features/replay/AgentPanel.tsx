import { ActionIcon, Anchor, SegmentedControl } from '@mantine/core';
import { IconArrowsMaximize } from '@tabler/icons-react';
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useRef, useState, type Ref } from 'react';
import { asProblem } from '@/api/problem';
import { episodeQuery, episodesQuery, type Episode } from '@/api/runResources';
import { runQuery } from '@/api/runs';
import { IconLink } from '@/components/controls';
import { Loading, Problem } from '@/components/feedback';
import { showToast } from '@/components/toasts';
import { useStepTaken } from '@/lib/firstSteps';
import { formatCount, formatScore } from '@/lib/format';
import { useFullSizeKey } from '@/lib/hooks';
import { EpisodePlayer } from './EpisodePlayer';
import { LiveView } from './LiveView';
import classes from './replay.module.css';
import { sourceOfEpisode } from './source';
import { learnerOf } from './trace';

type View = 'live' | 'latest' | 'best';

const SORTS: Record<View, string> = {
  live: '-agent_steps',
  latest: '-agent_steps',
  best: '-episode_return',
};

const NONE_YET = 'No recorded episode yet. The first appears when an episode has ended.';

type Props = {
  run: string;
  running: boolean;
  ended: boolean;
  /** The id of a selected episode; without it the latest or the best is shown. */
  selected: string | undefined;
  onDeselect: () => void;
  ref?: Ref<HTMLElement>;
};

/** The agent live while it trains, or a replay: its latest, its best, or a selected episode. */
export function AgentPanel({ run, running, ended, selected, onDeselect, ref }: Props) {
  const [requested, setRequested] = useState<View | null>(null);
  const view = requested === 'live' && !running ? 'best' : (requested ?? (running ? 'live' : 'best'));
  const [previousView, setPreviousView] = useState(view);
  const [playing, setPlaying] = useState<Episode | null>(null);
  const [position, setPosition] = useState<{ episode: string; at: number } | null>(null);
  const list = useInfiniteQuery({ ...episodesQuery(run, SORTS[view]), enabled: view !== 'live' });
  const detail = useQuery(runQuery(run)).data;
  const { config, environment_config: environmentConfig } = detail?.spec ?? {};
  const learner = useMemo(() => learnerOf(config, environmentConfig), [config, environmentConfig]);
  const single = useQuery({ ...episodeQuery(run, selected ?? ''), enabled: selected !== undefined });
  const first = list.data?.pages[0]?.items[0];

  // A newer episode replaces the one that is playing only when that ends, or on request.
  const current = selected ? single.data : playing?.id === first?.id ? first : (playing ?? first);
  if (previousView !== view) {
    setPreviousView(view);
    setPlaying(null);
  } else if (!selected && !playing && first) setPlaying(first);
  const isChosen = selected !== undefined || (requested !== null && requested !== 'live');
  useStepTaken('replay', isChosen && current !== undefined);
  const newer = !selected && first && current && first.id !== current.id ? first : null;
  const switchTo = (next: View): void => {
    setRequested(next);
    setPlaying(null);
    if (selected) onDeselect();
  };

  const full = useRef<HTMLAnchorElement>(null);
  const isLive = view === 'live' && !selected;
  const { mutate: openLatest } = useLatestReplay(run);
  useFullSizeKey(() => (isLive ? openLatest() : full.current?.click()));

  const error = selected ? single.error : list.error;
  const title = selected ? 'Selected episode' : view === 'live' ? 'Live view' : 'Agent replay';
  return (
    <section ref={ref} tabIndex={-1} className={`panel ${classes.agent}`} aria-label="Agent">
      <header className="row wrap">
        <h2 className="visually-hidden">{title}</h2>
        <SegmentedControl
          size="xs"
          aria-label="Episode"
          value={selected ? 'selected' : view}
          data={[
            ...(running ? [{ value: 'live', label: 'Live' }] : []),
            { value: 'latest', label: 'Latest' },
            ...(selected
              ? [
                  {
                    value: 'selected',
                    label: single.data ? `At ${formatCount(single.data.agent_steps)}` : 'Selected',
                  },
                ]
              : []),
            { value: 'best', label: 'Best recorded' },
          ]}
          onChange={(value) => value !== 'selected' && switchTo(value as View)}
        />
        <span className="grow" />
        {isLive ? (
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label="Open the latest full replay"
            title="Open the latest full replay (F)"
            onClick={() => openLatest()}
          >
            <IconArrowsMaximize size={16} />
          </ActionIcon>
        ) : (
          current && (
            <IconLink
              to="/runs/$runId/episodes/$episodeId"
              params={{ runId: run, episodeId: current.id }}
              search={position?.episode === current.id ? { at: position.at } : {}}
              ref={full}
              aria-label="Open full replay"
              title="Open full replay (F)"
            >
              <IconArrowsMaximize size={16} />
            </IconLink>
          )
        )}
      </header>
      {isLive ? (
        <LiveView key={run} run={run} />
      ) : error && !current ? (
        <Problem error={error} onRetry={() => void (selected ? single : list).refetch()} />
      ) : current ? (
        <>
          <div className="row wrap">
            <span>
              return <b className="num">{formatScore(current.episode_return)}</b>
            </span>
            <span className="muted">
              {current.kind}, at agent step <span className="num">{formatCount(current.agent_steps)}</span>
            </span>
          </div>
          <EpisodePlayer
            key={current.id}
            source={sourceOfEpisode(current)}
            environment={detail?.environment}
            learner={learner}
            onEnded={() => newer && setPlaying(newer)}
            onAt={(at) => setPosition({ episode: current.id, at })}
          />
          {newer && (
            <span>
              <Anchor component="button" type="button" size="sm" onClick={() => setPlaying(newer)}>
                Watch the {view === 'best' ? 'new best' : 'latest'} one
              </Anchor>
            </span>
          )}
        </>
      ) : list.isPending || (selected && single.isPending) ? (
        <Loading label="Loading the episodes" />
      ) : (
        <div className={classes.stage}>{ended ? 'No recorded episode' : NONE_YET}</div>
      )}
    </section>
  );
}

/** Opens the replay of the latest recorded episode. The live view, which has no list of them, asks for it first. */
function useLatestReplay(run: string) {
  const client = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: () => client.infiniteQuery({ ...episodesQuery(run, SORTS.latest), staleTime: 0 }),
    onSuccess: async ({ pages }) => {
      const latest = pages[0]?.items[0];
      if (!latest) showToast(NONE_YET);
      else
        await navigate({
          to: '/runs/$runId/episodes/$episodeId',
          params: { runId: run, episodeId: latest.id },
        });
    },
    onError: (error) => showToast(asProblem(error).detail),
  });
}
