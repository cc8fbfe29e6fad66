import { Button } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { algorithmsQuery } from '@/api/catalogue';
import { createRuns } from '@/api/runs';
import { Empty, Problem } from '@/components/feedback';
import { PermittedButton, useDenied } from '@/components/permission';
import { plural } from '@/lib/format';

type Props = {
  /** The number of archived runs. */
  archived: number;
  onArchived: () => void;
};

/** The empty list of runs: in a new installation, or when all runs are archived. */
export function EmptyRuns({ archived, onArchived }: Props) {
  if (archived === 0) return <FirstRun />;
  return (
    <div className="panel">
      <Empty
        action={
          <Button variant="default" onClick={onArchived}>
            Show {plural(archived, 'archived run')}
          </Button>
        }
      >
        All runs are archived.
      </Empty>
    </div>
  );
}

const PONG = 'ALE/Pong-v5';

/** A new installation: one button starts the first run. */
function FirstRun() {
  const navigate = useNavigate();
  const denied = useDenied();
  const { data: algorithms } = useQuery(algorithmsQuery);
  const preset = algorithms
    ?.find(({ id }) => id === 'paac')
    ?.presets.find(({ environments }) => environments.includes(PONG));
  const start = useMutation({
    mutationFn: () =>
      createRuns({
        algorithm: 'paac',
        environment: PONG,
        config: preset?.config ?? {},
        environment_config: preset?.environment_config ?? {},
        stop: preset?.stop ?? {},
      } as Parameters<typeof createRuns>[0]),
    onSuccess: ([run]) => run && navigate({ to: '/runs/$runId', params: { runId: run.id } }),
  });
  return (
    <div className="panel" style={{ marginTop: 12 }}>
      <Empty
        action={
          denied === undefined ? (
            <Button size="sm" loading={start.isPending} disabled={!preset} onClick={() => start.mutate()}>
              Start PAAC on Pong
            </Button>
          ) : (
            <PermittedButton size="sm" denied={denied}>
              Start PAAC on Pong
            </PermittedButton>
          )
        }
      >
        No runs yet. Start an agent on Pong, with a cropped frame, on two CPU cores, and watch it learn.
      </Empty>
      {start.isError && <Problem error={start.error} />}
    </div>
  );
}
