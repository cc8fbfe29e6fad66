/** What a run will cost, as far as it can be told beforehand. */
import type { Environment } from '@/api/catalog';
import type { Run } from '@/api/runs';
import { nRunsOf, rawOf, type Draft } from './draft';
import { parseRaw, type Setting } from '@/lib/schema';

export type Cost = {
  nRuns: number;
  agentSteps: number | null;
  frames: number | null;
  /** Training time of one run, and the run whose rate says so. */
  time_s: number | null;
  memoryBytes: number | null;
  measuredBy: Run | null;
};

/** What lies behind a run that begins from a checkpoint; its bounds count it too. */
export type Begun = { agent_steps: number; wall_time_s: number | null };

const numberAt = (settings: readonly Setting[], draft: Draft, path: string): number | null => {
  const setting = settings.find((each) => each.path === path);
  if (!setting) return null;
  const { value } = parseRaw(setting, rawOf(draft, setting));
  return typeof value === 'number' ? value : null;
};

/** Agent steps a second of a run over its whole training time. */
export function rateOf(run: Run): number | null {
  return run.wall_time_s !== null && run.wall_time_s > 5 ? run.agent_steps / run.wall_time_s : null;
}

/** Whether the fields that decide a run's memory are the same. */
function sameShape(settings: readonly Setting[], draft: Draft, run: Run): boolean {
  const config = run.spec.config as Record<string, unknown> | undefined;
  return settings
    .filter(({ section, group }) => section === 'config' && (group === 'parallelism' || group === 'network'))
    .every((setting) => parseRaw(setting, rawOf(draft, setting)).value === config?.[setting.key]);
}

/** The cost of a draft, measured by an earlier run of the same algorithm in the same world. */
export function costOf(
  settings: readonly Setting[],
  draft: Draft,
  world: Environment | undefined,
  earlier: readonly Run[],
  begun: Begun = { agent_steps: 0, wall_time_s: 0 },
): Cost {
  const further = (path: string, done: number | null): number | null => {
    const bound = numberAt(settings, draft, path);
    return bound === null ? null : Math.max(0, bound - (done ?? 0));
  };
  const agentSteps = further('stop.agent_steps', begun.agent_steps);
  const bound_s = further('stop.wall_time_s', begun.wall_time_s);
  const perStep =
    numberAt(settings, draft, 'environment_config.frame_skip') ?? world?.frames_per_agent_step ?? null;
  const like = earlier.find((run) => rateOf(run) !== null && sameShape(settings, draft, run)) ?? null;
  const measuredBy = like ?? earlier.find((run) => rateOf(run) !== null) ?? null;
  const rate = measuredBy && rateOf(measuredBy);
  const times = [agentSteps !== null && rate ? agentSteps / rate : null, bound_s].filter(
    (time) => time !== null,
  );
  return {
    nRuns: nRunsOf(draft),
    agentSteps,
    frames: agentSteps !== null && perStep !== null ? agentSteps * perStep : null,
    time_s: times.length > 0 ? Math.min(...times) : null,
    memoryBytes: like?.memory_estimate_bytes ?? null,
    measuredBy,
  };
}
