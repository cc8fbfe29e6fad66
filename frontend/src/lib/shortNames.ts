import type { Run } from '@/api/runs';

/** The words in which names differ; a common word stays before a number that differs, as in "seed 2". */
function distinct(names: readonly string[]): string[] {
  const all = names.map((name) => name.split(' '));
  const isCommon = (word: string): boolean => all.every((words) => words.includes(word));
  return all.map((words) =>
    words
      .filter((word, at) => {
        const next = words[at + 1];
        return !isCommon(word) || (next !== undefined && /^\d+$/.test(next) && !isCommon(next));
      })
      .join(' '),
  );
}

type Named = Pick<Run, 'id' | 'name'> & Partial<Pick<Run, 'seed' | 'seed_is_known'>>;

/** Names, with the seeds of runs that share a name where their seeds differ. */
function withSeeds(runs: readonly Named[]): string[] {
  const names = runs.map(({ name }) => name);
  const isShared = (name: string): boolean => names.indexOf(name) !== names.lastIndexOf(name);
  const seeded = runs.map(({ name, seed, seed_is_known }) =>
    seed !== undefined && seed_is_known && isShared(name) ? `${name}, seed ${seed}` : name,
  );
  return new Set(seeded).size > new Set(names).size ? seeded : names;
}

/** By id, names of runs without what they have in common, where that leaves them as different as before. */
export function shortNames(runs: readonly Named[]): ReadonlyMap<string, string> {
  const names = withSeeds(runs);
  const short = distinct(names);
  const isClear = short.every(Boolean) && new Set(short).size === new Set(names).size;
  return new Map(runs.map(({ id, name }, at) => [id, (isClear && short[at]) || (names[at] ?? name)]));
}

/** The longest name of a legend, which fits the smallest panel. */
const MAX_LENGTH = 32;

const cutInMiddle = (name: string): string => {
  if (name.length <= MAX_LENGTH) return name;
  const end = Math.ceil(MAX_LENGTH * 0.6);
  return `${name.slice(0, MAX_LENGTH - 1 - end)}…${name.slice(-end)}`;
};

/** How many characters all names start or end with, without a part of a word or number. */
function commonLength(names: readonly string[], side: 'start' | 'end'): number {
  const letter = (name: string | undefined, at: number): string | undefined =>
    name?.at(side === 'start' ? at : -1 - at);
  const [first = ''] = names;
  let length = 0;
  while (length < first.length && names.every((name) => letter(name, length) === letter(first, length))) {
    length += 1;
  }
  while (length > 0 && /[\p{L}\p{N}.]/u.test(letter(first, length - 1) ?? '')) length -= 1;
  return length;
}

const EQUALS = ' = ';

/** Names such as "gamma = 0.9, 5 seeds", split into what they share ("gamma, 5 seeds") and the rest ("0.9"). */
export function splitShared(names: readonly string[]): { shared: string; rest: readonly string[] } {
  const [first = ''] = names;
  const [start, common] = [commonLength(names, 'start'), commonLength(names, 'end')];
  // Only whole parts: not the word "seeds" without its number.
  const end = first.at(-common) === ',' ? common : 0;
  const setting = first.slice(0, start);
  const rest = names.map((name) => name.slice(start, Math.max(start, name.length - end)));
  if (!setting.endsWith(EQUALS) || new Set(names).size < 2 || rest.includes('')) {
    return { shared: '', rest: names };
  }
  return { shared: setting.slice(0, -EQUALS.length) + first.slice(first.length - end), rest };
}

/** Similar names by the words in which they differ, and where these are too long, by the part that differs. */
function differences(names: readonly string[]): string[] {
  const words = distinct(names).map((name) => `…${name}`);
  if (words.every(({ length }) => length <= MAX_LENGTH)) return words;
  const [start, end] = [commonLength(names, 'start'), commonLength(names, 'end')];
  return names.map((name) => {
    const rest = name.slice(start, Math.max(start, name.length - end));
    return cutInMiddle(`${start > 0 ? '…' : ''}${rest}${end > 0 ? '…' : ''}`);
  });
}

/** Names that fit a legend: cut in the middle, or, where they would then be equal, at what they share. */
export function fitted(names: readonly string[]): string[] {
  const short = new Map(names.map((name) => [name, cutInMiddle(name)]));
  for (const cut of new Set(short.values())) {
    const similar = [...short.keys()].filter((name) => cutInMiddle(name) === cut);
    if (similar.length === 1) continue;
    for (const [at, difference] of differences(similar).entries()) short.set(similar[at] ?? '', difference);
  }
  const isClear = new Set(short.values()).size === short.size;
  return names.map((name) => (isClear && short.get(name)) || name);
}

/** By id, the whole names of runs and what a legend calls them. */
export function legendNames(runs: readonly Named[]): ReadonlyMap<string, { name: string; short: string }> {
  const short = fitted([...shortNames(runs).values()]);
  return new Map(runs.map(({ id, name }, at) => [id, { name, short: short[at] ?? name }]));
}
