/** The expected cost of a run. */
import type { Environment } from '@/api/catalogue';
import type { Run } from '@/api/runs';
import type { ConfigField } from '@/lib/schema';
import { parseValues } from '@/lib/values';
import { rawOf, type Draft } from './draft';
import { nRunsOf } from './requests';

export type Cost = {
  nRuns: number;
  agentSteps: number | null;
  frames: number | null;
  /** Training time of one run; of several values of a field, the largest counts. */
  time_s: number | null;
  /** The run whose rate was used for the time. */
  measuredBy: Run | null;
};

/** The progress of the checkpoint that a fork starts from; the fork's bounds include it. */
export type StartingPoint = { agent_steps: number; wall_time_s: number | null };

const numberAt = (fields: readonly ConfigField[], draft: Draft, path: string): number | null => {
  const field = fields.find((candidate) => candidate.path === path);
  if (!field) return null;
  const value = largestOf(field, draft);
  return typeof value === 'number' ? value : null;
};

/** A field's value; of several numbers the largest, and of other lists none. */
function largestOf(field: ConfigField, draft: Draft): unknown {
  const { values } = parseValues(field, rawOf(draft, field));
  if (values.length < 2) return values[0];
  const numbers = values.filter((value) => typeof value === 'number');
  return numbers.length > 0 ? Math.max(...numbers) : undefined;
}

/** A run's agent steps per second over its whole training time. */
export function rateOf(run: Run): number | null {
  return run.wall_time_s !== null && run.wall_time_s > 5 ? run.agent_steps / run.wall_time_s : null;
}

/** Settings of an environment that determine how much the network computes for an agent step. */
const SIZES: ReadonlySet<string> = new Set(['observation_size', 'crop', 'frame_skip']);

/** Whether the fields of some groups, and those that determine the network's input, are equal. */
function hasSame(groups: readonly string[], fields: readonly ConfigField[], draft: Draft, run: Run): boolean {
  return fields
    .filter(({ section, group, key }) =>
      section === 'config' ? groups.includes(group) : section === 'environment_config' && SIZES.has(key),
    )
    .every((field) => {
      const values = run.spec[field.section] as Record<string, unknown> | undefined;
      return largestOf(field, draft) === values?.[field.key];
    });
}

/** The cost of a draft, estimated from earlier runs of its algorithm in its environment. */
export function costOf(
  fields: readonly ConfigField[],
  draft: Draft,
  environment: Environment | undefined,
  earlier: readonly Run[],
  startingPoint: StartingPoint = { agent_steps: 0, wall_time_s: 0 },
): Cost {
  const remaining = (path: string, done: number | null): number | null => {
    const bound = numberAt(fields, draft, path);
    return bound === null ? null : Math.max(0, bound - (done ?? 0));
  };
  const agentSteps = remaining('stop.agent_steps', startingPoint.agent_steps);
  const bound_s = remaining('stop.wall_time_s', startingPoint.wall_time_s);
  const framesPerStep =
    numberAt(fields, draft, 'environment_config.frame_skip') ?? environment?.frames_per_agent_step ?? null;
  const measured = earlier.filter((run) => rateOf(run) !== null);
  // Another network may be ten times as slow.
  const measuredBy =
    measured.find((run) => hasSame(['network', 'parallelism'], fields, draft, run)) ??
    measured.find((run) => hasSame(['network'], fields, draft, run)) ??
    null;
  const rate = measuredBy && rateOf(measuredBy);
  const times = [agentSteps !== null && rate ? agentSteps / rate : null, bound_s].filter(
    (time) => time !== null,
  );
  return {
    nRuns: nRunsOf(fields, draft),
    agentSteps,
    frames: agentSteps !== null && framesPerStep !== null ? agentSteps * framesPerStep : null,
    time_s: times.length > 0 ? Math.min(...times) : null,
    measuredBy,
  };
}
