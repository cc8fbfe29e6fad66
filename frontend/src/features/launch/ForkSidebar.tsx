import { Button, NativeSelect } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Checkpoint } from '@/api/runResources';
import type { Run } from '@/api/runs';
import { formatInteger } from '@/lib/format';
import classes from './launch.module.css';

type Props = {
  parent: Run;
  checkpoints: readonly Checkpoint[];
  checkpoint: string | null;
  hasOlder: boolean;
  loadingOlder: boolean;
  error: string | undefined;
  onCheckpoint: (id: string | null) => void;
  onOlder: () => void;
};

/** Where a fork starts: the parent run and one of its checkpoints. */
export function ForkSidebar({
  parent,
  checkpoints,
  checkpoint,
  hasOlder,
  loadingOlder,
  error,
  onCheckpoint,
  onOlder,
}: Props) {
  return (
    <div className={classes.sidebar}>
      <section className={`panel ${classes.block}`}>
        <h2 className="section-title">Fork of</h2>
        <Link to="/runs/$runId" params={{ runId: parent.id }}>
          {parent.name}
        </Link>
        <span className="muted">
          {parent.algorithm} on {parent.environment}. The network’s architecture cannot be changed: it has to
          match the checkpoint’s parameters.
        </span>
        <NativeSelect
          label="Checkpoint"
          value={checkpoint ?? ''}
          error={error}
          data={[
            { value: '', label: 'latest' },
            ...checkpoints.map(({ id, agent_steps }) => ({
              value: id,
              label: `at ${formatInteger(agent_steps)} agent steps`,
            })),
          ]}
          onChange={({ currentTarget }) => onCheckpoint(currentTarget.value || null)}
        />
        {hasOlder && (
          <Button variant="default" size="compact-sm" loading={loadingOlder} onClick={onOlder}>
            Load older checkpoints
          </Button>
        )}
      </section>
    </div>
  );
}
