import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { runDiffQuery } from '@/api/runDiff';
import { ButtonLink, TextLink } from '@/components/controls';
import { Empty, Loading, PageProblem } from '@/components/feedback';
import { RunDiffSections } from '@/features/compare/RunDiffSections';
import { checked, runIds, type Unchecked } from '@/lib/search';

const validateSearch = (search: Unchecked) =>
  checked({
    /** Ids of the two runs, separated by a comma. */
    runs: runIds(search.runs),
  });

export const Route = createFileRoute('/_shell/diff')({ validateSearch, component: DiffPage });

/** What differs between two runs: config, live changes, code, packages, host and command. */
function DiffPage() {
  useDocumentTitle('Diff · Callboard');
  const { runs = '' } = Route.useSearch();
  const [a, b] = runs.split(',').filter(Boolean);
  return (
    <div className="page" style={{ display: 'grid', gap: 12, gridTemplateColumns: 'minmax(0, 1fr)' }}>
      <div className="row wrap">
        <h1 className="page-title">Diff</h1>
        <span className="grow" />
        {a !== undefined && b !== undefined && (
          <TextLink to="/" search={{ list: 'beside', runs: `${a},${b}` }}>
            Compare both
          </TextLink>
        )}
      </div>
      {a !== undefined && b !== undefined ? (
        <Difference a={a} b={b} />
      ) : (
        <div className="panel">
          <Empty
            action={
              <ButtonLink to="/" variant="default">
                Back to runs
              </ButtonLink>
            }
          >
            Select two runs in the list, then Diff.
          </Empty>
        </div>
      )}
    </div>
  );
}

function Difference({ a, b }: { a: string; b: string }) {
  const { data, error, refetch } = useQuery(runDiffQuery(a, b));
  return (
    <>
      {error && <PageProblem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading label="Loading the differences" lines={8} />}
      {data && <RunDiffSections diff={data} />}
    </>
  );
}
