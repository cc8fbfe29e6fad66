/** The rows of the list beside the charts: runs, or configs over seeds. */
import type { Comparison, GroupStatistics } from '@/api/comparisons';
import type { ViewNames } from '@/api/names';
import type { Run } from '@/api/runs';
import { compareNames } from '@/lib/names';
import { BROKEN_OFF } from '@/lib/run';
import { type ListSort, NONE_HIDDEN } from '@/components/run/search';

export type Row = {
  /** Id of the run or group. */
  id: string;
  name: string;
  /** What it is called where its own name helps too. */
  label: string;
  score: number | null;
  isEarly: boolean;
  /** The scores of its seeds. */
  scores: readonly number[];
  /** Of a group: its seeds that count, and all. */
  seeds?: { counted: number; all: number };
  /** Whether a run of it broke off, so that it stands below the others. */
  isBroken: boolean;
  runs: readonly Run[];
};

/** With more rows, the best are drawn at first. */
export const MAX_DRAWN = 6;

export const rowsOfRuns = (runs: readonly Run[], names: ViewNames): Row[] =>
  runs.map((run) => ({
    id: run.id,
    name: names.of(run),
    label: names.label(run),
    score: run.score,
    isEarly: run.score_is_early,
    scores: run.score === null ? [] : [run.score],
    isBroken: BROKEN_OFF.has(run.state),
    runs: [run],
  }));

/**
 * The rows of groups.
 *
 * @param shown a comparison of fewer runs, whose numbers those of its groups are.
 */
export function rowsOfGroups(comparison: Comparison, shown: Comparison, runs: readonly Run[]): Row[] {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const drawn = new Map(shown.groups.map((group) => [group.id, group]));
  return comparison.groups.map((group) => {
    const { id, name, runs: members } = group;
    const numbers = drawn.get(id) ?? group;
    const counted = scoresOf(numbers);
    return {
      id,
      name,
      label: name,
      score: numbers.iqm?.value ?? null,
      isEarly: false,
      scores: counted,
      seeds: {
        counted: counted.length,
        all: members.filter(({ left_out }) => left_out !== 'repeated').length,
      },
      isBroken: group.n_broken_off > 0,
      runs: members.flatMap(({ run }) => byId.get(run) ?? []),
    };
  });
}

const scoresOf = ({ runs }: GroupStatistics): number[] =>
  runs.flatMap(({ counted, score }) => (counted && score !== null ? [score] : []));

/** Without a number last, whichever the direction. */
const byNumber = (a: number | null, b: number | null, sign: number): number =>
  a === null || b === null ? Number(a === null) - Number(b === null) : sign * (a - b);

const byScore = (a: Row, b: Row, sign: number): number =>
  Number(a.isBroken) - Number(b.isBroken) ||
  Number(a.isEarly) - Number(b.isEarly) ||
  byNumber(a.score, b.score, sign);

const NOTHING: ReadonlySet<string> = new Set();

/** The rows in an order, with pinned ones on top. */
export function sorted(rows: readonly Row[], sort: ListSort, pins: ReadonlySet<string> = NOTHING): Row[] {
  const sign = sort.startsWith('-') ? -1 : 1;
  const by = sort.replace('-', '');
  return rows.toSorted((a, b) => {
    const byPin = Number(pins.has(b.id)) - Number(pins.has(a.id));
    if (byPin !== 0) return byPin;
    if (by === 'name') return sign * compareNames(a.name, b.name);
    if (by === 'n') return sign * ((a.seeds?.all ?? 1) - (b.seeds?.all ?? 1));
    return byScore(a, b, sign);
  });
}

/** The ids of the rows that are not drawn: those in the address, at first all but the best. */
export function hiddenOf(rows: readonly Row[], hidden: string | undefined): ReadonlySet<string> {
  if (hidden === NONE_HIDDEN) return new Set();
  if (hidden !== undefined) return new Set(hidden.split(','));
  return new Set(
    sorted(rows, '-score')
      .slice(MAX_DRAWN)
      .map(({ id }) => id),
  );
}
