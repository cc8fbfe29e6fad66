import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { environmentQuery } from '@/api/catalogue';
import { humanReferencesQuery } from '@/api/play';
import type { RunDetail } from '@/api/runs';
import { EPISODE_RETURN } from '@/api/series';
import { ProgressBar } from '@/components/ProgressBar';
import { Term } from '@/components/Term';
import { Early, RelativeTime } from '@/components/text';
import { isPlayable, referenceScores } from '@/lib/environments';
import {
  DASH,
  describePublished,
  formatCount,
  formatDuration,
  formatInteger,
  formatPublished,
  formatRate,
  formatScore,
  formatTimeLeft,
  plural,
} from '@/lib/format';
import { isExternal, stepsOf } from '@/lib/run';
import classes from './run.module.css';

const BEST_HINT =
  'Highest true return of any training episode; only some episodes are recorded, so the best recorded one may have less';

/** A score is the mean of at most so many training episodes, the last ones. */
const SCORE_EPISODES = 100;

/** What a score is the mean of: it lags behind the curve. */
function scoredOver({ score, episodes, return_metric }: RunDetail): string {
  if (score === null || (return_metric !== null && return_metric !== EPISODE_RETURN)) return '';
  return `, mean of ${plural(Math.min(SCORE_EPISODES, episodes), 'episode')}`;
}

/** The time left at the average rate of the whole training, if that of the last minutes is what ends it. */
function timeLeftByAverage_s({ spec, agent_steps, wall_time_s, time_left_s }: RunDetail): number | null {
  const { agent_steps: bound, wall_time_s: limit } = (spec.stop ?? {}) as Partial<
    Record<string, number | null>
  >;
  if (time_left_s === null || bound == null || wall_time_s === null || agent_steps === 0) return time_left_s;
  const left = ((bound - agent_steps) * wall_time_s) / agent_steps;
  return limit == null ? left : Math.min(left, limit - wall_time_s);
}

/** A run's score beside those of random play and of a human, its progress, and other figures. */
export function KeyFigures({ run }: { run: RunDetail }) {
  const iterates = run.step_unit === 'iterations';
  const external = isExternal(run);
  const bound = (run.spec.stop as { agent_steps?: number | null } | undefined)?.agent_steps;
  const { data: environment } = useQuery({ ...environmentQuery(run.environment), enabled: !external });
  const references = referenceScores(environment);
  const lacksHuman =
    environment !== undefined &&
    isPlayable(environment) &&
    !environment.published.some(({ label }) => label === 'human');
  const { data: people } = useQuery({ ...humanReferencesQuery, enabled: lacksHuman });
  const person = lacksHuman ? people?.find((mean) => mean.environment === run.environment) : undefined;
  /** Its script may end it at any time. */
  const isEndless = external && bound == null;
  const counted = iterates
    ? `${formatInteger(run.agent_steps)} iterations; its script has not reported the agent steps of one`
    : `${formatInteger(run.agent_steps)} agent steps, ${formatInteger(run.frames)} frames`;
  return (
    <dl className={classes.facts}>
      <Fact
        label={
          <>
            <Term>Score</Term>
            {scoredOver(run)}
          </>
        }
        large
        hint={
          run.return_metric && run.return_metric !== EPISODE_RETURN
            ? `By its metric ${run.return_metric}`
            : 'Mean true return of the last 100 training episodes'
        }
      >
        {formatScore(run.score)}
        {run.score_is_early && <Early />}
      </Fact>
      {references.map((reference) => (
        <Fact
          key={reference.label}
          label={reference.label === 'random' ? 'Random' : 'Human'}
          hint={describePublished(reference)}
        >
          {formatPublished(reference.score)}
        </Fact>
      ))}
      {person && (
        <Fact
          label="Human here"
          hint={`Mean of ${person.player} over ${plural(person.n_games, 'game')} here, under the protocol human play: no human score has been published${person.seen_by_people === null ? '' : `. People see ${person.seen_by_people}, agents do not`}`}
        >
          {formatScore(person.mean_return)}
        </Fact>
      )}
      <Fact label="Best return" hint={BEST_HINT}>
        {formatScore(run.best_return)}
      </Fact>
      {isEndless ? (
        <Fact label={iterates ? 'Iterations' : 'Agent steps'} hint={counted}>
          {formatCount(run.agent_steps)}
        </Fact>
      ) : (
        <>
          <Fact
            label={
              <>
                {formatCount(run.agent_steps)}
                {bound != null && ` of ${formatCount(bound)}`} {stepsOf(run)}
              </>
            }
            hint={counted}
            wide
          >
            <ProgressBar fraction={run.progress} label="Progress" />
          </Fact>
          <Fact
            label="Time left"
            hint="By the rate of the last minutes; where that of the whole training differs much, by both"
          >
            {formatTimeLeft(run.time_left_s, timeLeftByAverage_s(run))}
          </Fact>
        </>
      )}
      <Fact label={iterates ? 'Iterations/s' : 'Agent steps/s'}>{formatRate(run.agent_steps_per_s)}</Fact>
      <Fact label="Episodes" apart>
        {formatCount(run.episodes)}
      </Fact>
      <Fact label="Training time">{formatDuration(run.wall_time_s)}</Fact>
      {!external && <Fact label="Host">{run.host ?? run.attempts.at(-1)?.host ?? DASH}</Fact>}
      {!external && <Fact label="Attempt">{run.attempt || DASH}</Fact>}
      <Fact label={run.started_at ? 'Started' : 'Queued'}>
        <RelativeTime at={run.started_at ?? run.created_at} />
      </Fact>
    </dl>
  );
}

type FactProps = {
  label: ReactNode;
  hint?: string;
  large?: boolean;
  wide?: boolean;
  /** Whether it is the first of those at the right edge. */
  apart?: boolean;
  children: ReactNode;
};

function Fact({ label, hint, large, wide, apart, children }: FactProps) {
  return (
    <div title={hint} data-large={large} data-wide={wide} data-apart={apart}>
      <dt>{typeof label === 'string' ? <Term>{label}</Term> : label}</dt>
      <dd>{children}</dd>
    </div>
  );
}
