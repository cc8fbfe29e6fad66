import { useEffect } from 'react';

const SETTLED_MS = 400;

/** Reports a step once it has stayed the same for a moment: maps of steps that pass by are not computed. */
export function StepFollower({ step, onSettled }: { step: number; onSettled: (step: number) => void }) {
  useEffect(() => {
    const timer = setTimeout(() => onSettled(step), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [step, onSettled]);
  return null;
}
