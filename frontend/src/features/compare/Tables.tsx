import { useNames, type ViewNames } from '@/api/names';
import type { Run } from '@/api/runs';
import { Empty } from '@/components/feedback';
import { settingNames } from '@/components/config/settingTitles';
import { RunLink } from '@/components/run/RunLink';
import { StateBadge } from '@/components/run/StateBadge';
import { ScrollPanel } from '@/components/ScrollPanel';
import { Early, Name } from '@/components/text';
import { seedOf, stepsOf, stepsTitle } from '@/lib/run';
import {
  DASH,
  formatCount,
  formatDuration,
  formatRate,
  formatScore,
  formatValue,
  plural,
} from '@/lib/format';
import classes from './compare.module.css';

export type Difference = {
  /** Such as `config.n_e`. */
  path: string;
  /** One value per run, in the runs' order. */
  values: unknown[];
};

const SECTIONS = ['config', 'environment_config', 'stop'] as const;
const TOP_LEVEL = ['algorithm', 'environment', 'seed', 'device'] as const;

/** The values of a run's settings by path. */
export function settingsOf(run: Run): Map<string, unknown> {
  const values = new Map<string, unknown>();
  for (const key of TOP_LEVEL) values.set(key, run.spec[key]);
  if (run.spec.seed_is_known === false) values.delete('seed');
  for (const section of SECTIONS) {
    for (const [key, value] of Object.entries((run.spec[section] ?? {}) as Record<string, unknown>)) {
      values.set(`${section}.${key}`, value);
    }
  }
  return values;
}

/**
 * The config values in which the runs differ. A value that a run lacks counts as different, unless other algorithms, or
 * external runs, lack it.
 */
export function configDiff(runs: readonly Run[]): Difference[] {
  const all = runs.map(settingsOf);
  const kinds = runs.map(({ origin, spec }) => JSON.stringify([origin, spec.algorithm]));
  const paths = [...new Set(all.flatMap((config) => [...config.keys()]))];
  return paths.flatMap((path) => {
    const values = all.map((config) => config.get(path));
    const having = new Set(kinds.filter((_, at) => values[at] !== undefined));
    const counted = values.filter((value, at) => value !== undefined || having.has(kinds[at] ?? ''));
    const distinct = new Set(counted.map((value) => JSON.stringify(value)));
    return distinct.size > 1 ? { path, values } : [];
  });
}

/** The progress and the scores of each run. */
export function ScoresTable({ runs, names }: { runs: readonly Run[]; names: ViewNames }) {
  const steps = stepsTitle(runs);
  const areMixed = new Set(runs.map(stepsOf)).size > 1;
  return (
    <ScrollPanel label="Runs" className={classes.scroll}>
      <table className="grid">
        <thead>
          <tr>
            <th>Run</th>
            <th>State</th>
            <th className="right">Seed</th>
            <th className="right">{steps}</th>
            <th className="right">Training time</th>
            <th className="right">{steps}/s, mean</th>
            <th className="right" title="Mean true return of the last 100 training episodes">
              Score
            </th>
            <th className="right">Best return</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.id}>
              <td>
                <RunLink run={run} names={names} />
              </td>
              <td>
                <StateBadge state={run.state} reason={run.state_reason} />
              </td>
              <td className="right num">{seedOf(run) ?? DASH}</td>
              <td className="right num">
                {formatCount(run.agent_steps)}
                {areMixed && ` ${stepsOf(run)}`}
              </td>
              <td className="right num">{formatDuration(run.wall_time_s)}</td>
              <td className="right num">
                {formatRate(run.wall_time_s ? run.agent_steps / run.wall_time_s : null)}
                {areMixed && ` ${stepsOf(run)}/s`}
              </td>
              <td className="right num">
                {formatScore(run.score)}
                {run.score_is_early && <Early />}
              </td>
              <td className="right num">{formatScore(run.best_return)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollPanel>
  );
}

/** The runs of each config, by their place: those that differ in nothing but the seed. */
function byConfig(runs: readonly Run[], differences: readonly Difference[]): number[][] {
  const settings = differences.filter(({ path }) => path !== 'seed');
  const key = (at: number): string => JSON.stringify(settings.map(({ values }) => values[at] ?? null));
  return [...Map.groupBy(runs.keys(), key).values()];
}

/** The config values in which the runs differ: a column for each config, whatever its number of seeds. */
export function ConfigDiffTable({
  runs,
  label = 'Config diff',
  titles = new Map(),
}: {
  runs: readonly Run[];
  /** The accessible name. */
  label?: string;
  /** The titles of the settings by path. */
  titles?: ReadonlyMap<string, string>;
}) {
  const all = configDiff(runs);
  const configs = byConfig(runs, all);
  const hasSeeds = configs.length < runs.length;
  const differences = hasSeeds ? all.filter(({ path }) => path !== 'seed') : all;
  const firsts = configs.flatMap(([first]) => (first === undefined ? [] : (runs[first] ?? [])));
  const names = useNames(firsts);
  const settings = settingNames(
    differences.map(({ path }) => path),
    titles,
  );
  if (all.length === 0) return <Empty>The configs are identical.</Empty>;
  if (differences.length === 0) return <Empty>The configs are identical but for the seed.</Empty>;
  return (
    <ScrollPanel label={label} className={classes.scroll}>
      <table className="grid">
        <thead>
          <tr>
            <th>Hyperparameter</th>
            {firsts.map((run, column) => (
              <th key={run.id} className={`right ${classes.run}`} title={run.name}>
                <Name name={names.of(run)} />
                {hasSeeds && <div>{plural(configs[column]?.length ?? 1, 'seed')}</div>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {differences.map(({ path, values }) => (
            <tr key={path}>
              <td title={path}>{settings.get(path)}</td>
              {configs.map(([first = 0]) => (
                <td key={first} className="right num">
                  {values[first] === undefined ? DASH : formatValue(values[first])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollPanel>
  );
}
