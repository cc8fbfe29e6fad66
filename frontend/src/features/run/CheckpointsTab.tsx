import { Anchor, Button } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { checkpointsQuery } from '@/api/runParts';
import { Empty, Loading, Problem } from '@/components/feedback';
import { ScrollPanel } from '@/components/ScrollPanel';
import { ButtonLink } from '@/components/links';
import { Time } from '@/components/Time';
import { formatBytes, formatCount, formatDuration, formatWhole } from '@/lib/format';

/** The files a run can go on from. */
export function CheckpointsTab({ run }: { run: string }) {
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = useInfiniteQuery(
    checkpointsQuery(run),
  );
  if (error) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading label="Loading the checkpoints" />;
  const checkpoints = data.pages.flatMap(({ items }) => items);
  if (checkpoints.length === 0) return <Empty>No checkpoint yet.</Empty>;
  return (
    <>
      <ScrollPanel label="Checkpoints">
        <table className="grid">
          <thead>
            <tr>
              <th className="right">Agent steps</th>
              <th className="right">Updates</th>
              <th className="right">Episodes</th>
              <th className="right">Training time</th>
              <th className="right">Attempt</th>
              <th>Saved</th>
              <th className="right">Size</th>
              <th>File</th>
              <th className="actions">
                <span className="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {checkpoints.map((checkpoint) => (
              <tr key={checkpoint.id}>
                <td className="right num" title={formatWhole(checkpoint.agent_steps)}>
                  {formatCount(checkpoint.agent_steps)}
                </td>
                <td className="right num">{formatCount(checkpoint.updates)}</td>
                <td className="right num">{formatCount(checkpoint.episodes)}</td>
                <td className="right num">{formatDuration(checkpoint.wall_time_s)}</td>
                <td className="right num">{checkpoint.attempt}</td>
                <td>
                  <Time at={checkpoint.recorded_at} />
                </td>
                <td className="right num">{formatBytes(checkpoint.size_bytes)}</td>
                <td className="num nowrap">
                  <Anchor
                    href={`/api/v1/checkpoints/${checkpoint.id}/file`}
                    download
                    title={`SHA-256 ${checkpoint.sha256}`}
                    inherit
                  >
                    {checkpoint.file}
                  </Anchor>
                </td>
                <td className="actions">
                  <ButtonLink
                    size="compact-xs"
                    variant="default"
                    to="/new"
                    search={{ fork: run, checkpoint: checkpoint.id }}
                  >
                    Fork from here
                  </ButtonLink>
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
