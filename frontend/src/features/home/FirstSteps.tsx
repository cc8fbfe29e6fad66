import { CloseButton } from '@mantine/core';
import { IconCircle, IconCircleCheck } from '@tabler/icons-react';
import type { Run } from '@/api/runs';
import { TextLink } from '@/components/controls';
import { useFirstSteps } from '@/lib/firstSteps';
import classes from './home.module.css';
import { stepsDone } from './steps';

/** With more runs than these, nobody is new. */
export const MAX_RUNS = 20;

/** What to try after the first run: four steps, each of which is ticked once it is done. */
export function FirstSteps({ runs }: { runs: readonly Run[] }) {
  const [remembered, remember] = useFirstSteps();
  const own = runs.filter(({ origin }) => origin === 'callboard');
  const first = own.at(-1);
  const done = stepsDone(own, remembered);
  const nDone = Object.values(done).filter(Boolean).length;
  if (!first || remembered.includes('hidden') || nDone === 4) return null;
  const again = { to: '/new', search: { from: first.id } } as const;
  return (
    <section className={`panel ${classes.steps}`} aria-label="First steps">
      <h2 className={classes.title}>
        First steps <span className={classes.pace}>{nDone} of 4</span>
      </h2>
      <ol>
        <Step done={done.replay}>
          <TextLink to="/runs/$runId" params={{ runId: first.id }} search={{ tab: 'episodes' }}>
            Watch a replay
          </TextLink>
        </Step>
        <Step done={done.rate}>
          <TextLink {...again}>Change the learning rate</TextLink>
        </Step>
        <Step done={done.seeds}>
          <TextLink {...again}>Train five seeds</TextLink>
        </Step>
        <Step done={done.compare}>
          <TextLink to="/" search={{ list: 'beside', runs: own.map(({ id }) => id).join(',') }}>
            Compare
          </TextLink>
        </Step>
      </ol>
      <CloseButton size="sm" aria-label="Hide the first steps" onClick={() => remember('hidden')} />
    </section>
  );
}

function Step({ done, children }: { done: boolean; children: React.ReactNode }) {
  const Icon = done ? IconCircleCheck : IconCircle;
  return (
    <li data-done={done}>
      <Icon size={16} role="img" aria-label={done ? 'Done:' : 'To do:'} />
      {children}
    </li>
  );
}
