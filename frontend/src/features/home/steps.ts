import type { Run } from '@/api/runs';
import type { Remembered } from '@/lib/firstSteps';

type Steps = { replay: boolean; rate: boolean; seeds: boolean; compare: boolean };

const N_SEEDS = 5;

type Spec = { config?: { learning_rate?: unknown }; environment_config?: unknown };

/** What makes two runs equal but for their seeds. */
const configOf = ({ algorithm, environment, spec }: Run): string => {
  const { config, environment_config } = spec as Spec;
  return JSON.stringify([algorithm, environment, config, environment_config]);
};

/** Which of the first steps are done, as the runs and this browser show. */
export function stepsDone(runs: readonly Run[], remembered: readonly Remembered[]): Steps {
  const rates = new Map<string, Set<unknown>>();
  const seeds = new Map<string, Set<number>>();
  for (const run of runs) {
    const pair = `${run.algorithm} ${run.environment}`;
    const config = configOf(run);
    rates.set(pair, (rates.get(pair) ?? new Set()).add((run.spec as Spec).config?.learning_rate));
    seeds.set(config, (seeds.get(config) ?? new Set<number>()).add(run.seed));
  }
  return {
    replay: remembered.includes('replay'),
    rate: [...rates.values()].some(({ size }) => size > 1),
    seeds: [...seeds.values()].some(({ size }) => size >= N_SEEDS),
    compare: remembered.includes('compare'),
  };
}
