import { useState } from 'react';
import { useRunChange, type Run, type RunChanges } from '@/api/runs';
import { asProblem } from '@/api/problem';

export type RunEdit = {
  /** Saves changes; throws the problem. */
  save: (what: string, changes: RunChanges) => Promise<void>;
  /** What was changed last. */
  saved: string | null;
  undo: () => void;
  /** Why the undo failed. */
  problem: string | null;
};

/** Saves changes of a run's fields, and takes the last one back. */
export function useRunEdit(run: Run): RunEdit {
  const change = useRunChange(run.id);
  const [last, setLast] = useState<{ what: string; before: RunChanges } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  return {
    save: async (what, changes) => {
      const before = Object.fromEntries(
        (Object.keys(changes) as (keyof RunChanges)[]).map((field) => [field, run[field]]),
      );
      await change.mutateAsync(changes);
      setProblem(null);
      setLast({ what, before });
    },
    saved: last?.what ?? null,
    undo: () => {
      if (!last) return;
      change.mutateAsync(last.before).then(
        () => setLast(null),
        (error: unknown) => setProblem(asProblem(error).message),
      );
    },
    problem,
  };
}
