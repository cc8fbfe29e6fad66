import { TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import type { FieldProblem } from '@/api/problem';
import { MAX_RUNS } from '@/lib/runBounds';
import { LoadingButton } from '@/components/controls';
import type { ConfigField } from '@/lib/schema';
import type { Draft } from './draft';
import classes from './launch.module.css';
import { isSweep, nRunsOf } from './requests';
import { errorSummary } from './validation';

type Props = {
  fields: readonly ConfigField[];
  draft: Draft;
  draftErrors: readonly FieldProblem[];
  serverErrors: readonly FieldProblem[];
  /** Whether it starts a fork. */
  isFork?: boolean;
  /** Whether the number of seeds can be chosen. */
  hasSeeds?: boolean;
  /** Why the user may not start runs. */
  refusal: string | undefined;
  starting: boolean;
  onNSeeds: (nSeeds: string) => void;
  /** What is shown while nothing is wrong. */
  children: ReactNode;
};

/** What the runs will cost, or what is wrong, with the number of seeds and the button that starts them. */
export function LaunchBar({
  fields,
  draft,
  draftErrors,
  serverErrors,
  isFork = false,
  hasSeeds = !isFork,
  refusal,
  starting,
  onNSeeds,
  children,
}: Props) {
  const seedsError = draftErrors.find(({ field }) => field === 'nSeeds')?.message;
  const sweep = !isFork && isSweep(fields, draft);
  const nRuns = isFork || seedsError ? 1 : nRunsOf(fields, draft);
  return (
    <footer className={classes.footer}>
      {refusal ? (
        <span role="status" id="refusal">
          {refusal}
        </span>
      ) : serverErrors.length > 0 ? (
        <span role="alert" className={classes.error}>
          Not started. {errorSummary(fields, [...serverErrors, ...draftErrors])}
        </span>
      ) : draftErrors.length > 0 ? (
        <span role="status" className={classes.error}>
          {errorSummary(fields, draftErrors)}
        </span>
      ) : (
        children
      )}
      <span className="grow" />
      {hasSeeds && !sweep && (
        <span className="row">
          <label htmlFor="n-seeds">Seeds</label>
          <TextInput
            id="n-seeds"
            w={56}
            inputMode="numeric"
            autoComplete="off"
            aria-label={`Number of seeds, 1 to ${MAX_RUNS}: one run per seed`}
            title={seedsError ?? 'One run per seed.'}
            classNames={{ input: 'num' }}
            value={draft.nSeeds}
            error={seedsError !== undefined}
            // Typing replaces the default.
            onFocus={({ currentTarget }) => currentTarget.select()}
            onChange={({ currentTarget }) => onNSeeds(currentTarget.value)}
          />
        </span>
      )}
      <LoadingButton
        type="submit"
        loading={starting}
        title={
          refusal ?? 'You can also press Enter in a field, but in the search for an environment and in Notes.'
        }
        unavailable={refusal !== undefined}
        aria-describedby={refusal && 'refusal'}
      >
        {isFork ? 'Start fork' : sweep ? 'Start sweep' : nRuns > 1 ? `Start ${nRuns} runs` : 'Start run'}
      </LoadingButton>
    </footer>
  );
}
