import { useLocalStorage } from '@mantine/hooks';
import { useEffect } from 'react';

/** Steps that leave no trace in the runs. This browser remembers them, and whether the list of steps is hidden. */
export type Remembered = 'replay' | 'compare' | 'hidden';

const options = {
  key: 'callboard-first-steps',
  defaultValue: [] as readonly Remembered[],
  getInitialValueInEffect: false,
};

/** The remembered steps, and a function that adds one. */
export function useFirstSteps(): [readonly Remembered[], (step: Remembered) => void] {
  const [steps, setSteps] = useLocalStorage<readonly Remembered[]>(options);
  return [steps, (step) => setSteps((before) => (before.includes(step) ? before : [...before, step]))];
}

/** Remembers a step as soon as it is taken. */
export function useStepTaken(step: Remembered, taken: boolean): void {
  const [steps, remember] = useFirstSteps();
  const isNew = taken && !steps.includes(step);
  useEffect(() => {
    if (isNew) remember(step);
    // `remember` is another function each time.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [isNew, step]);
}
