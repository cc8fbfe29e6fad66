import { Button } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { algorithmsQuery } from '@/api/catalog';
import { startRuns } from '@/api/runs';
import { Empty, Problem } from '@/components/feedback';
import { plural } from '@/lib/format';

type Props = {
  /** How many archived runs there are. */
  archived: number;
  onArchived: () => void;
};

/** No run in the list: that of a new installation, or of one whose runs are all archived. */
export function EmptyRuns({ archived, onArchived }: Props) {
  if (archived === 0) return <FirstRun />;
  return (
    <div className="panel">
      <Empty
        action={
          <Button variant="default" onClick={onArchived}>
            Show the archived
          </Button>
        }
      >
        Nothing but {plural(archived, 'archived run')}.
      </Empty>
    </div>
  );
}

/** One sentence and one button. */
function FirstRun() {
  const navigate = useNavigate();
  const { data: algorithms } = useQuery(algorithmsQuery);
  const preset = algorithms
    ?.find(({ id }) => id === 'paac')
    ?.presets.find(({ observation }) => observation === 'pixels');
  const start = useMutation({
    mutationFn: () =>
      startRuns({
        algorithm: 'paac',
        environment: 'ALE/Pong-v5',
        config: preset?.config ?? {},
        environment_config: preset?.environment_config ?? {},
        stop: preset?.stop ?? {},
      } as Parameters<typeof startRuns>[0]),
    onSuccess: ([run]) => run && navigate({ to: '/runs/$runId', params: { runId: run.id } }),
  });
  return (
    <div className="panel">
      <Empty
        action={
          <Button size="sm" loading={start.isPending} disabled={!preset} onClick={() => start.mutate()}>
            Start PAAC on Pong
          </Button>
        }
      >
        Nothing has run here yet: start an agent on Pong, on two CPU cores, and watch it.
      </Empty>
      {start.isError && <Problem error={start.error} />}
    </div>
  );
}
