import { useState } from 'react';
import { useRunChange, type Run, type RunChanges, type RunExpectation } from '@/api/runs';
import { asProblem } from '@/api/problem';

export type RunEdit = {
  /** Saves changes; throws the problem. `from`: the values when the editor was opened, by default those that the page
   * shows; the changes are refused if a field has another value by now. */
  save: (what: string, changes: Fields, from?: RunExpectation) => Promise<void>;
  /** What was changed last. */
  saved: string | null;
  undo: () => void;
  /** Why the undo failed. */
  problem: string | null;
};

type Fields = Omit<RunChanges, 'expected'>;

/** Saves changes of a run's fields, and undoes the last one. */
export function useRunEdit(run: Run): RunEdit {
  const change = useRunChange(run.id);
  const [last, setLast] = useState<{ what: string; before: Fields; after: Fields } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  return {
    save: async (what, changes, from) => {
      const before = Object.fromEntries(
        (Object.keys(changes) as (keyof Fields)[]).map((field) => [field, run[field]]),
      );
      const changed = await change.mutateAsync({ ...changes, expected: from ?? before });
      // The service may store another value than the one sent: the metric that it knows, for none.
      const after = Object.fromEntries(
        Object.keys(before).map((field) => [field, changed[field as keyof Fields]]),
      );
      setProblem(null);
      setLast({ what, before, after });
    },
    saved: last?.what ?? null,
    undo: () => {
      if (!last) return;
      change.mutateAsync({ ...last.before, expected: last.after }).then(
        () => setLast(null),
        (error: unknown) => setProblem(asProblem(error).message),
      );
    },
    problem,
  };
}
