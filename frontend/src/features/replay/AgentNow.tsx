import { Anchor, SegmentedControl } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { episodeQuery, episodesQuery, type Episode } from '@/api/runParts';
import { Loading, Problem } from '@/components/feedback';
import { TextLink } from '@/components/links';
import { formatCount, formatScore } from '@/lib/format';
import { EpisodePlayer } from './EpisodePlayer';
import { LivePlay } from './LivePlay';
import classes from './replay.module.css';

type Which = 'live' | 'newest' | 'best';

const SORTS: Record<Which, string> = {
  live: '-agent_steps',
  newest: '-agent_steps',
  best: '-episode_return',
};

type Props = {
  run: string;
  running: boolean;
  ended: boolean;
  /** An episode someone picked; none: the newest or the best. */
  picked: string | undefined;
  onUnpick: () => void;
};

/** The agent playing: live while it trains, its newest or best episode, or one that was picked. */
export function AgentNow({ run, running, ended, picked, onUnpick }: Props) {
  const [asked, setWhich] = useState<Which | null>(null);
  const which = asked === 'live' && !running ? 'best' : (asked ?? (running ? 'live' : 'best'));
  const [shownAs, setShownAs] = useState(which);
  const [shown, setShown] = useState<Episode | null>(null);
  const [looked, setLooked] = useState<{ episode: string; at: number } | null>(null);
  const list = useInfiniteQuery(episodesQuery(run, SORTS[which]));
  const one = useQuery({ ...episodeQuery(run, picked ?? ''), enabled: picked !== undefined });
  const first = list.data?.pages[0]?.items[0];

  // What plays goes on playing; a newer episode waits until it has ended or is asked for.
  const current = picked ? one.data : (shown ?? first);
  if (shownAs !== which) {
    setShownAs(which);
    setShown(null);
  } else if (!picked && !shown && first) setShown(first);
  const newer = !picked && first && current && first.id !== current.id ? first : null;
  const choose = (next: Which): void => {
    setWhich(next);
    setShown(null);
    if (picked) onUnpick();
  };

  const error = picked ? one.error : list.error;
  return (
    <section className={`panel ${classes.agent}`} aria-label="The agent playing">
      <header className="row wrap">
        <h2 className="section-title">{picked ? 'Picked episode' : 'The agent playing'}</h2>
        <span className="grow" />
        <SegmentedControl
          size="xs"
          aria-label="Which episode"
          value={picked ? 'picked' : which}
          data={[
            ...(picked ? [{ value: 'picked', label: 'Picked' }] : []),
            ...(running ? [{ value: 'live', label: 'Live' }] : []),
            { value: 'newest', label: 'Newest' },
            { value: 'best', label: 'Best' },
          ]}
          onChange={(value) => value !== 'picked' && choose(value as Which)}
        />
      </header>
      {which === 'live' && !picked ? (
        <LivePlay key={run} run={run} />
      ) : error ? (
        <Problem error={error} onRetry={() => void (picked ? one : list).refetch()} />
      ) : current ? (
        <>
          <div className="row wrap">
            <span>
              return <b className="num">{formatScore(current.episode_return)}</b>
            </span>
            <span className="muted">
              {current.kind}, after <span className="num">{formatCount(current.agent_steps)}</span> agent
              steps
            </span>
          </div>
          <EpisodePlayer
            key={current.id}
            episode={current}
            onEnded={() => newer && setShown(newer)}
            onAt={(at) => setLooked({ episode: current.id, at })}
          />
          <span className={classes.newer}>
            <TextLink
              to="/runs/$runId/episodes/$episodeId"
              params={{ runId: run, episodeId: current.id }}
              search={looked?.episode === current.id ? { at: looked.at } : {}}
              size="sm"
              mr={16}
            >
              Open large
            </TextLink>
            {newer && (
              <Anchor component="button" type="button" size="sm" onClick={() => setShown(newer)}>
                Watch the {which === 'best' ? 'new best' : 'newest'} one
              </Anchor>
            )}
          </span>
        </>
      ) : list.isPending || (picked && one.isPending) ? (
        <Loading label="Loading the episodes" />
      ) : (
        <div className={classes.stage}>
          {ended ? 'No episode was kept.' : 'No episode kept yet; the first appears when one has ended.'}
        </div>
      )}
    </section>
  );
}
