import { NativeSelect } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Checkpoint } from '@/api/runParts';
import type { Run } from '@/api/runs';
import { formatWhole } from '@/lib/format';
import classes from './launch.module.css';

type Props = {
  parent: Run;
  checkpoints: readonly Checkpoint[];
  checkpoint: string | null;
  problem: string | undefined;
  onCheckpoint: (id: string | null) => void;
};

/** Where a fork begins: the run it comes from, and which of its checkpoints. */
export function ForkSide({ parent, checkpoints, checkpoint, problem, onCheckpoint }: Props) {
  return (
    <div className={classes.side}>
      <section className={`panel ${classes.block}`}>
        <h2 className="section-title">Begins where this run was</h2>
        <Link to="/runs/$runId" params={{ runId: parent.id }}>
          {parent.name}
        </Link>
        <span className="muted">
          {parent.algorithm} on {parent.environment}. The network keeps its shape, for the checkpoint’s
          parameters must fit into it.
        </span>
        <NativeSelect
          size="xs"
          label="Checkpoint"
          value={checkpoint ?? ''}
          error={problem}
          data={[
            { value: '', label: 'the newest' },
            ...checkpoints.map(({ id, agent_steps }) => ({
              value: id,
              label: `at ${formatWhole(agent_steps)} agent steps`,
            })),
          ]}
          onChange={({ currentTarget }) => onCheckpoint(currentTarget.value || null)}
        />
      </section>
    </div>
  );
}
