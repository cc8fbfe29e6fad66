import { Button } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { runsQuery } from '@/api/runs';
import { ButtonLink } from '@/components/controls';
import { Empty } from '@/components/feedback';
import { N_OFFERED } from './RunFinder';

/** What Compare is for, with an example, and the latest runs with a score to begin with. */
export function NothingCompared({ onRuns }: { onRuns: (ids: readonly string[]) => void }) {
  // The same request as that of the runs that are offered.
  const { data } = useInfiniteQuery(runsQuery({ limit: N_OFFERED, archived: 'all' }));
  const latest = (data?.pages[0]?.items ?? []).filter(({ score }) => score !== null).slice(0, 2);
  const offers = latest.length === 2;
  return (
    <Empty
      action={
        <span className="row">
          {offers && (
            <Button onClick={() => onRuns(latest.map(({ id }) => id))}>Compare the latest two</Button>
          )}
          <ButtonLink to="/" variant={offers ? 'default' : 'filled'}>
            Select runs in the list
          </ButtonLink>
        </span>
      }
    >
      Compare draws the curves of several runs in one chart, and tests which config is better. Train, for
      example, two learning rates with five seeds each: over seeds their curves have bands, and a table says
      whether the difference may be chance.
    </Empty>
  );
}
