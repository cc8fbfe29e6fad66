/** What a sweep's configurations are sorted by, and their state in the race. */
import type { Configuration, SweepDetail } from '@/api/sweeps';
import { formatValue } from '@/lib/format';

/** The settings that vary between configurations, by path. */
export const variedSettings = ({ spec }: SweepDetail): string[] => Object.keys(spec.space);

export type Standing = 'best' | 'racing' | 'not eliminated' | 'eliminated' | 'not raced';

/** How a configuration stands. */
export function standingOf({ best, spec, state }: SweepDetail, configuration: Configuration): Standing {
  if (configuration.eliminated !== null) return 'eliminated';
  if (configuration.number === best?.number) return 'best';
  if (!spec.racing) return 'not raced';
  return state === 'running' ? 'racing' : 'not eliminated';
}

const STANDINGS: readonly Standing[] = ['best', 'racing', 'not eliminated', 'not raced', 'eliminated'];

export const scoresOf = ({ runs }: Configuration): number[] => runs.flatMap(({ score }) => score ?? []);

/** Columns whose highest values are the most interesting ones. */
const DESCENDING: ReadonlySet<string> = new Set(['seeds', 'iqm', 'median', 'scores']);

export const DEFAULT_SORT = '-iqm';

/** The sort after pressing a column's header: reversed if it is sorted by that column already. */
export function nextSort(sort: string, column: string): string {
  if (sort === column) return `-${column}`;
  if (sort === `-${column}`) return column;
  return DESCENDING.has(column) ? `-${column}` : column;
}

type Value = number | string | null;

function valueOf(sweep: SweepDetail, configuration: Configuration, column: string): Value {
  if (column in configuration.settings) return plain(configuration.settings[column]);
  if (column === 'number') return configuration.number;
  if (column === 'seeds') return configuration.n;
  if (column === 'iqm') return configuration.iqm;
  if (column === 'median') return configuration.median?.value ?? null;
  if (column === 'scores') return configuration.n > 0 ? Math.max(...scoresOf(configuration)) : null;
  if (column === 'state') return STANDINGS.indexOf(standingOf(sweep, configuration));
  return null;
}

const plain = (value: unknown): Value =>
  typeof value === 'number' || typeof value === 'string' ? value : value == null ? null : formatValue(value);

function compare(a: number | string, b: number | string): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}

/** By these, configurations with seeds that broke off come last: their scores are those of the survivors. */
const SCORES: ReadonlySet<string> = new Set(['iqm', 'median', 'scores']);

/** The configurations by a column, descending if it begins with `-`; those without a value come last. */
export function sorted(sweep: SweepDetail, sort: string): Configuration[] {
  const column = sort.replace(/^-/, '');
  const sign = sort.startsWith('-') ? -1 : 1;
  const values = new Map(
    sweep.configurations.map((configuration) => [configuration, valueOf(sweep, configuration, column)]),
  );
  return sweep.configurations.toSorted((first, other) => {
    const [a, b] = [values.get(first) ?? null, values.get(other) ?? null];
    const below = SCORES.has(column) ? Number(first.n_broken_off > 0) - Number(other.n_broken_off > 0) : 0;
    if (a !== null && b !== null) return below || sign * compare(a, b) || first.number - other.number;
    return Number(a === null) - Number(b === null) || first.number - other.number;
  });
}

/** The lowest and the highest score of any seed; null without a score. */
export function scoreRange({ configurations }: SweepDetail): [number, number] | null {
  const scores = configurations.flatMap(scoresOf);
  if (scores.length === 0) return null;
  return [Math.min(...scores), Math.max(...scores)];
}

/** Configurations and runs that a comparison still shows well. */
const MAX_COMPARED = 4;
const MAX_COMPARED_RUNS = 100;

/** The best configurations that are not eliminated. */
export function bestConfigurations(sweep: SweepDetail): Configuration[] {
  const inRace = sorted(sweep, '-iqm').filter(({ eliminated, iqm }) => eliminated === null && iqm !== null);
  return inRace.slice(0, MAX_COMPARED);
}

/** The ids of the runs of some configurations. */
export const runsOf = (configurations: readonly Configuration[]): string[] =>
  configurations
    .flatMap(({ runs }) => runs.flatMap(({ run, score }) => (score === null ? [] : (run ?? []))))
    .slice(0, MAX_COMPARED_RUNS);
