import { Checkbox, TextInput } from '@mantine/core';
import { MAX_SEEDS } from '@/lib/runBounds';
import type { Draft } from './draft';
import classes from './launch.module.css';
import { MIN_SWEEP_SEEDS } from './validation';

type Props = { draft: Draft; error: string | undefined; onChange: (change: Partial<Draft>) => void };

/** Whether several combinations of values are started as a sweep, and with how many seeds. */
export function SweepFields({ draft, error, onChange }: Props) {
  return (
    <section className={`panel ${classes.block}`} aria-label="Several combinations">
      <h2 className="section-title">Several combinations</h2>
      <Checkbox
        size="xs"
        label="Start as a sweep"
        description="Seeds are added in rounds, and combinations that are worse than another get no more."
        checked={draft.sweep}
        onChange={({ currentTarget }) => onChange({ sweep: currentTarget.checked })}
      />
      {draft.sweep && (
        <Checkbox
          size="xs"
          label="Seeds of its own for each combination"
          description="Combinations then differ by their initial weights too, as in random searches of papers."
          checked={draft.distinctSeeds}
          onChange={({ currentTarget }) => onChange({ distinctSeeds: currentTarget.checked })}
        />
      )}
      {draft.sweep && (
        <TextInput
          label="Seeds of each combination, at most"
          inputWrapperOrder={['label', 'input', 'error', 'description']}
          description={`${MIN_SWEEP_SEEDS} to ${MAX_SEEDS}. The first comparison needs ${MIN_SWEEP_SEEDS} seeds of each.`}
          inputMode="numeric"
          autoComplete="off"
          maw={280}
          classNames={{ input: 'num' }}
          value={draft.maxSeeds}
          error={error}
          onChange={({ currentTarget }) => onChange({ maxSeeds: currentTarget.value })}
        />
      )}
    </section>
  );
}
