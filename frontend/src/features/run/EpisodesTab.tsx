import { Button, SegmentedControl } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { episodesQuery, type Episode } from '@/api/runResources';
import { ShowMore } from '@/components/controls';
import { Empty, Loading, Problem } from '@/components/feedback';
import { ScrollPanel } from '@/components/ScrollPanel';
import { RelativeTime } from '@/components/text';
import { formatCount, formatScore, formatInteger } from '@/lib/format';

const VIDEO: Record<Episode['video'], string> = {
  none: 'rendered on demand',
  queued: 'queued for rendering',
  running: 'rendering…',
  done: 'rendered',
  failed: 'rendering failed',
};

type Props = {
  run: string;
  /** The number of training episodes so far. */
  nEpisodes: number;
  /** Sort by return rather than by time. */
  best: boolean;
  onBest: (best: boolean) => void;
  selected: string | undefined;
  onSelect: (episode: string) => void;
};

const LATEST = '-agent_steps';
const BEST = '-episode_return';

/** The recorded episodes, each of which can be watched. */
export function EpisodesTab({ run, nEpisodes, best, onBest, selected, onSelect }: Props) {
  const sort = best ? BEST : LATEST;
  const pages = useInfiniteQuery(episodesQuery(run, sort));
  const { data, error, refetch } = pages;
  if (error && !data) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading label="Loading the episodes" />;
  const episodes = data.pages.flatMap(({ items }) => items);
  if (episodes.length === 0)
    return (
      <Empty>
        No recorded episodes yet. About one training episode per 20 s is recorded, once it has ended.
      </Empty>
    );
  return (
    <>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      <div className="row wrap" style={{ marginBottom: 8 }}>
        <SegmentedControl
          size="xs"
          aria-label="Order"
          value={sort}
          data={[
            { value: LATEST, label: 'Latest first' },
            { value: BEST, label: 'Best first' },
          ]}
          onChange={(value) => onBest(value === BEST)}
        />
        <span className="muted">
          About one training episode per 20 s is recorded, of{' '}
          <span className="num">{formatCount(nEpisodes)}</span> so far.
        </span>
      </div>
      <ScrollPanel label="Episodes">
        <table className="grid">
          <thead>
            <tr>
              <th className="right">At agent step</th>
              <th className="wide">Kind</th>
              <th className="right">Return</th>
              <th className="right">Length (agent steps)</th>
              <th className="right wide">Length (frames)</th>
              <th className="wide">Ended</th>
              <th>Video</th>
              <th className="actions">
                <span className="visually-hidden">Watch</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {episodes.map((episode) => (
              <tr key={episode.id} aria-current={episode.id === selected || undefined}>
                <td className="right num">{formatInteger(episode.agent_steps)}</td>
                <td className="wide">{episode.kind}</td>
                <td className="right num">{formatScore(episode.episode_return)}</td>
                <td className="right num">{formatInteger(episode.length_steps)}</td>
                <td className="right num wide">{formatInteger(episode.length_frames)}</td>
                <td className="wide">
                  <RelativeTime at={episode.recorded_at} />
                </td>
                <td className="muted">{VIDEO[episode.video]}</td>
                <td className="actions">
                  <Button
                    size="compact-xs"
                    variant={episode.id === selected ? 'filled' : 'default'}
                    onClick={() => onSelect(episode.id)}
                    aria-label={`Watch the episode with return ${formatScore(episode.episode_return)}`}
                  >
                    {episode.id === selected ? 'Selected' : 'Watch'}
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollPanel>
      <ShowMore query={pages} mt={8} />
    </>
  );
}
