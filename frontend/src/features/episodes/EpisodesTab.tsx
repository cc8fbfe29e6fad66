import { Button, SegmentedControl } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { episodesQuery, type Episode } from '@/api/runParts';
import { Empty, Loading, Problem } from '@/components/feedback';
import { ScrollPanel } from '@/components/ScrollPanel';
import { Time } from '@/components/Time';
import { formatCount, formatScore, formatWhole } from '@/lib/format';

const VIDEO: Record<Episode['video'], string> = {
  none: 'drawn when watched',
  queued: 'waits to be drawn',
  running: 'is being drawn',
  done: 'drawn',
  failed: 'could not be drawn',
};

type Props = {
  run: string;
  /** How many training episodes have ended. */
  ended: number;
  /** Whether the best stand first, not the newest. */
  best: boolean;
  onBest: (best: boolean) => void;
  picked: string | undefined;
  onPick: (episode: string) => void;
};

const NEWEST = '-agent_steps';
const BEST = '-episode_return';

/** The kept episodes; each can be watched. */
export function EpisodesTab({ run, ended, best, onBest, picked, onPick }: Props) {
  const sort = best ? BEST : NEWEST;
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = useInfiniteQuery(
    episodesQuery(run, sort),
  );
  if (error) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading label="Loading the episodes" />;
  const episodes = data.pages.flatMap(({ items }) => items);
  if (episodes.length === 0) return <Empty>No episode has been kept yet.</Empty>;
  return (
    <>
      <div className="row wrap" style={{ marginBottom: 8 }}>
        <SegmentedControl
          size="xs"
          aria-label="Order"
          value={sort}
          data={[
            { value: NEWEST, label: 'Newest first' },
            { value: BEST, label: 'Best first' },
          ]}
          onChange={(value) => onBest(value === BEST)}
        />
        <span className="muted">
          Of <span className="num">{formatCount(ended)}</span> training episodes some are recorded; of these,
          one is kept about every 20 seconds of training, and the best.
        </span>
      </div>
      <ScrollPanel label="Episodes">
        <table className="grid">
          <thead>
            <tr>
              <th className="right">Agent steps</th>
              <th>Kind</th>
              <th className="right">Return</th>
              <th className="right">Decisions</th>
              <th className="right">Frames</th>
              <th>Ended</th>
              <th>Video</th>
              <th className="actions">
                <span className="visually-hidden">Watch</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {episodes.map((episode) => (
              <tr key={episode.id} aria-current={episode.id === picked || undefined}>
                <td className="right num" title={formatWhole(episode.agent_steps)}>
                  {formatCount(episode.agent_steps)}
                </td>
                <td>{episode.kind}</td>
                <td className="right num">{formatScore(episode.episode_return)}</td>
                <td className="right num">{formatWhole(episode.length_steps)}</td>
                <td className="right num">{formatWhole(episode.length_frames)}</td>
                <td>
                  <Time at={episode.recorded_at} />
                </td>
                <td className="muted nowrap">{VIDEO[episode.video]}</td>
                <td className="actions">
                  <Button
                    size="compact-xs"
                    variant={episode.id === picked ? 'filled' : 'default'}
                    onClick={() => onPick(episode.id)}
                    aria-label={`Watch the episode with return ${formatScore(episode.episode_return)}`}
                  >
                    {episode.id === picked ? 'Shown' : 'Watch'}
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollPanel>
      {hasNextPage && (
        <Button variant="default" mt={8} loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Show more
        </Button>
      )}
    </>
  );
}
