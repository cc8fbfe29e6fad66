import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { newKey } from '@/api/client';
import { addSeeds, type Comparison, type Improvement } from '@/api/comparisons';
import { keys } from '@/api/keys';
import { asProblem } from '@/api/problem';
import { LoadingButton } from '@/components/controls';
import { formatP, formatEstimate } from '@/components/Estimate';
import { useDenied } from '@/components/permission';
import { Name } from '@/components/text';
import { showToast } from '@/components/toasts';
import { shortEnvironmentName } from '@/lib/environments';
import { formatScore, plural } from '@/lib/format';
import classes from './compare.module.css';

type Verdict = Comparison['best'][number];

type Props = {
  comparison: Comparison;
  /** The number of configs that are not drawn, and so not tested. */
  nHidden: number;
};

/** Which config is best, whether that is decided, and what decides it. */
export function VerdictPanel({ comparison, nHidden }: Props) {
  const { best } = comparison;
  return (
    <section className={`panel ${classes.verdict}`} aria-label="Verdict" aria-live="polite">
      {best.length === 0 && <span className="muted">No verdict: no run has a score yet.</span>}
      {best.map((verdict) => (
        <VerdictOf
          key={`${verdict.environment} ${verdict.group}`}
          comparison={comparison}
          verdict={verdict}
          isNamed={best.length > 1}
        />
      ))}
      <div className="muted">
        {nHidden > 0 && `${plural(nHidden, 'hidden config')} not tested. `}
        <a href="#statistics">How this is tested</a>
      </div>
    </section>
  );
}

type OfProps = { comparison: Comparison; verdict: Verdict; isNamed: boolean };

/** The verdict on the configs of one environment. */
function VerdictOf({ comparison, verdict, isNamed }: OfProps) {
  const group = (id: string | null) => comparison.groups.find((other) => other.id === id);
  const [best, rival] = [group(verdict.group), group(verdict.rival)];
  if (!best) return null;
  const result = comparison.improvements.find(({ a, b }) =>
    [a, b].every((id) => id === best.id || id === rival?.id),
  );
  const isBaseline = rival !== undefined && comparison.baselines.includes(rival.id);
  const isDecided = result?.better === best.id;
  const left = best.runs.concat(rival?.runs ?? []).filter(({ left_out }) => left_out === 'broke_off').length;
  return (
    <div>
      {isNamed && <div className="muted">{shortEnvironmentName(verdict.environment)}</div>}
      <strong>
        <Name name={best.name} /> {headline(isDecided, rival !== undefined)}
        {rival && (
          <>
            {' '}
            {isBaseline && 'the baseline '}
            <Name name={rival.name} />
          </>
        )}
      </strong>
      <div className="num">
        {result && rival
          ? `${signed(result, best.id)}, ${formatP(result.p_adjusted)}, ${best.n} + ${plural(rival.n, 'seed')}`
          : `${formatScore(best.iqm?.value)}, ${plural(best.n, 'seed')}${rival ? `, against ${formatScore(rival.iqm?.value)}` : ''}`}
      </div>
      {left > 0 && (
        <div className="muted">
          {plural(left, 'seed')} that broke off {left > 1 ? 'are' : 'is'} left out.
        </div>
      )}
      {rival && result?.better === rival.id && (
        <div>
          Not decided: the test finds <Name name={rival.name} /> better.
        </div>
      )}
      {rival && !result?.better && <Missing verdict={verdict} />}
    </div>
  );
}

function headline(isDecided: boolean, hasRival: boolean): string {
  if (!hasRival) return 'is the only config with a score';
  return isDecided ? 'is better than' : 'is ahead of';
}

/** The difference of a group of a pair from the other one, with its interval. */
export function signed({ a, difference }: Improvement, group: string): string {
  const { value, low, high } = difference;
  const negative = (bound: number | null): number | null => (bound === null ? null : -bound);
  const turned =
    a === group ? difference : { value: negative(value), low: negative(high), high: negative(low) };
  const text = formatEstimate(turned, formatScore);
  return (turned.value ?? 0) > 0 ? `+${text}` : text;
}

/** How many seeds would decide, and a button that queues them. */
function Missing({ verdict }: { verdict: Verdict }) {
  const { seeds, are_fewest, missing } = verdict;
  const client = useQueryClient();
  const denied = useDenied();
  const wanted = missing.filter(({ n }) => n > 0);
  const items = wanted.flatMap(({ run, n }) => (run === null ? [] : { run, n }));
  // Requests for the same seeds create them once.
  const request = JSON.stringify(items);
  const key = useRef({ request: '', key: '' });
  const queue = useMutation({
    mutationFn: () => {
      if (key.current.request !== request) key.current = { request, key: newKey() };
      return addSeeds(items, key.current.key);
    },
    onSuccess: (created) => {
      key.current = { request: '', key: '' };
      showToast(`${plural(created.length, 'run')} queued.`);
    },
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: keys.allRuns() }),
        client.invalidateQueries({ predicate: ({ queryKey }) => queryKey.includes('comparison') }),
      ]),
  });
  if (seeds === null)
    return (
      <div>Not decided. How many seeds would decide is not known: the scores overlap too much to say.</div>
    );
  const nQueued = missing.reduce((sum, { n_queued }) => sum + n_queued, 0);
  const counts = new Set(missing.map(({ n }) => n));
  const [count] = counts;
  // In the order of the names above.
  const what =
    counts.size === 1
      ? `${count} more ${count === 1 ? 'seed' : 'seeds'} each`
      : `${missing.map(({ n }) => n).join(' + ')} more seeds`;
  const would = are_fewest
    ? 'could decide; fewer cannot'
    : 'would decide with a probability of 80 %, if they score alike';
  return (
    <div className={classes.missingSeeds}>
      <span>
        Not decided. {wanted.length > 0 && `${what} ${would}.`}
        {nQueued > 0 && ` ${plural(nQueued, 'seed')} queued or training.`}
      </span>
      {wanted.length > 0 && items.length < wanted.length && (
        <span className="muted">
          These are trained elsewhere, or were changed live: start them by yourself.
        </span>
      )}
      {items.length > 0 && items.length === wanted.length && (
        <LoadingButton
          variant="light"
          size="compact-sm"
          loading={queue.isPending}
          unavailable={denied !== undefined}
          title={denied}
          onClick={() => queue.mutate()}
        >
          Queue{' '}
          {counts.size === 1
            ? `${plural(count ?? 0, 'seed')} each`
            : `${missing.map(({ n }) => n).join(' + ')} seeds`}
        </LoadingButton>
      )}
      {queue.isError && <span role="alert">{asProblem(queue.error).message}</span>}
    </div>
  );
}
