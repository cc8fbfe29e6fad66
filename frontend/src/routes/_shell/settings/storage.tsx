import { useDocumentTitle } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { hostsQuery } from '@/api/hosts';
import { startSetsQuery } from '@/api/startSets';
import { retentionQuery, storageQuery, storageRunsQuery, type Retention } from '@/api/storage';
import { LoadingButton } from '@/components/controls';
import { Empty, Loading, Problem } from '@/components/feedback';
import { useDenied } from '@/components/permission';
import { DiskTable } from '@/features/storage/DiskTable';
import { GroupPolicies } from '@/features/storage/GroupPolicies';
import { KindTable } from '@/features/storage/KindTable';
import { PolicyForm } from '@/features/storage/PolicyForm';
import { RunTable } from '@/features/storage/RunTable';
import { StartSets } from '@/features/storage/StartSets';
import classes from '@/features/storage/storage.module.css';
import { createFileRoute } from '@tanstack/react-router';

export const Route = createFileRoute('/_shell/settings/storage')({
  staticData: { settings: { label: 'Storage', order: 40 } },
  component: StoragePage,
});

const RUNS = 20;
const MAX_RUNS = 500;

/** What takes space, and the retention settings that limit it. */
function StoragePage() {
  useDocumentTitle('Storage · Callboard');
  const policies = useQuery(retentionQuery);
  const { data: retention, error, refetch } = policies;
  const sizes = useQuery(storageQuery);
  const largest = useQuery(storageRunsQuery(RUNS));
  const sets = useQuery(startSetsQuery);
  const hosts = useQuery(hostsQuery);
  // Waits for all: a section that grows would move those below it. Only for the first answers: a failed query is
  // pending again when its section is mounted and retries it.
  if ([sizes, largest, sets, hosts, policies].some((query) => !query.isFetched))
    return (
      <div className="page">
        <h1 className="page-title">Storage</h1>
        <Loading label="Loading the storage" lines={16} />
      </div>
    );
  return (
    <div className="page" style={{ display: 'grid', gap: 16, maxWidth: 1100 }}>
      <h1 className="page-title">Storage</h1>
      <Kinds />
      <LargestRuns />
      <StartSets />
      <Disks />
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {retention && (
        <>
          <InstallationPolicy retention={retention} />
          <GroupPolicies retention={retention} />
        </>
      )}
    </div>
  );
}

function Kinds() {
  const { data, error, refetch } = useQuery(storageQuery);
  return (
    <section className={classes.section} aria-label="Storage usage">
      <h2 className="section-title">Storage usage</h2>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading label="Loading the sizes" lines={6} />}
      {data && <KindTable storage={data} />}
    </section>
  );
}

function LargestRuns() {
  const [limit, setLimit] = useState(RUNS);
  const { data, error, refetch, isFetching } = useQuery(storageRunsQuery(limit));
  const runs = data?.filter(({ total }) => total > 0);
  return (
    <section className={classes.section} aria-label="Runs by size">
      <h2 className="section-title">Largest runs</h2>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!runs && !error && <Loading label="Loading the largest runs" lines={8} />}
      {runs?.length === 0 && (
        <div className="panel">
          <Empty>No run has stored files.</Empty>
        </div>
      )}
      {runs && runs.length > 0 && <RunTable runs={runs} />}
      {runs && runs.length >= limit && limit < MAX_RUNS && (
        <LoadingButton
          variant="default"
          style={{ justifySelf: 'start' }}
          loading={isFetching}
          onClick={() => setLimit(Math.min(MAX_RUNS, 5 * limit))}
        >
          Show more
        </LoadingButton>
      )}
    </section>
  );
}

function Disks() {
  const { data, error, refetch } = useQuery(hostsQuery);
  return (
    <section className={classes.section} aria-label="Disks">
      <h2 className="section-title">Host disks</h2>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading label="Loading the hosts" lines={2} />}
      {data?.items.length === 0 && (
        <div className="panel">
          <Empty>No host has registered.</Empty>
        </div>
      )}
      {data && data.items.length > 0 && <DiskTable hosts={data.items} />}
    </section>
  );
}

function InstallationPolicy({ retention: { installation } }: { retention: Retention }) {
  const denied = useDenied('admin');
  return (
    <section className={classes.section} aria-label="Installation retention policy">
      <h2 className="section-title">Installation retention policy</h2>
      <div className={`panel ${classes.panel}`}>
        <PolicyForm policy={installation} group={null} denied={denied} />
      </div>
    </section>
  );
}
