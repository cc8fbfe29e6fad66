import type { Run } from '@/api/runs';

export type Difference = {
  /** Where the setting stands, such as `config.n_e`. */
  path: string;
  /** One value a run, in the runs' order. */
  values: unknown[];
};

const SECTIONS = ['config', 'environment_config', 'stop'] as const;
const WHOLE = ['algorithm', 'environment', 'seed', 'device'] as const;

function flat(run: Run): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (const key of WHOLE) found.set(key, run.spec[key]);
  for (const section of SECTIONS) {
    for (const [key, value] of Object.entries((run.spec[section] ?? {}) as Record<string, unknown>)) {
      found.set(`${section}.${key}`, value);
    }
  }
  return found;
}

/** The settings in which runs differ; one that a run does not have counts as different. */
export function differencesOf(runs: readonly Run[]): Difference[] {
  const all = runs.map(flat);
  const paths = [...new Set(all.flatMap((settings) => [...settings.keys()]))];
  return paths.flatMap((path) => {
    const values = all.map((settings) => settings.get(path));
    const distinct = new Set(values.map((value) => JSON.stringify(value)));
    return distinct.size > 1 ? { path, values } : [];
  });
}
