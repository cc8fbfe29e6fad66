/** Completion of queries such as `algorithm:paac score>10`. */
import { STATISTICS } from '@/api/runFields';

export type Values = Readonly<Record<string, readonly string[]>>;

/** A setting or a metric, as the service lists them. */
type ExtraField = { name: string; kind: string };

/** The fields of the service's query language, each with its usual operator. */
const FIELDS: Readonly<Record<string, ':' | '>'>> = {
  algorithm: ':',
  environment: ':',
  state: ':',
  name: ':',
  tag: ':',
  group: ':',
  host: ':',
  queue: ':',
  notes: ':',
  id: ':',
  archived: ':',
  score: '>',
  best_return: '>',
  agent_steps: '>',
  frames: '>',
  episodes: '>',
  updates: '>',
  wall_time_s: '>',
  agent_steps_per_s: '>',
  seed: ':',
  priority: '>',
  attempt: '>',
  created_at: '>',
  started_at: '>',
  ended_at: '>',
};

const MAX_COMPLETIONS = 8;

/** The word before the caret, and its start. */
function wordAt(query: string, caret: number): { word: string; from: number } {
  const before = query.slice(0, caret);
  const from = Math.max(before.lastIndexOf(' '), before.lastIndexOf('(')) + 1;
  return { word: before.slice(from), from };
}

const quoted = (value: string): string => (/[\s()"]/.test(value) ? `"${value}"` : value);

const matching = (candidates: readonly string[], typed: string): string[] => {
  const lower = typed.toLowerCase();
  return candidates
    .filter((candidate) => candidate.toLowerCase().includes(lower) && candidate !== typed)
    .slice(0, MAX_COMPLETIONS);
};

const PLAIN = /^[\p{L}_][\p{L}\p{N}_./-]*$/u;

/** A field as the query language writes it: in double quotes if it has other characters than letters and `_./-`. */
const written = (field: string): string =>
  PLAIN.test(field) ? field : `"${field.replaceAll(/["\\\\]/g, String.raw`\$&`)}"`;

const FIELD = '[a-z_][a-z0-9_./-]*';
const TERM = new RegExp(`^(${FIELD})(:|=|!=)(.*)$`, 'i');
const WITHOUT_VALUE = new RegExp(`^(${FIELD})?(:|=|!=|>=?|<=?)$`, 'i');

/** Whether the word before the caret is incomplete: not a valid term yet, or one with completions left. */
export function isUnfinished(
  query: string,
  caret: number,
  values: Values,
  extra: readonly ExtraField[] = [],
): boolean {
  const { word } = wordAt(query, caret);
  if (WITHOUT_VALUE.test(word)) return true;
  const [, field = '', , typed = ''] = TERM.exec(word.toLowerCase()) ?? [];
  // Part of an environment's id is enough.
  if (field === 'environment' || values[field]?.some((value) => value.toLowerCase() === typed)) return false;
  if (complete(query, caret, values).length > 0) return true;
  // Part of a setting's or metric's path, of which the rest is still to come.
  return /[./]/.test(word) && matchingFields(word, extra).length > 0;
}

/** The completed queries for the word before the caret. */
export function complete(
  query: string,
  caret: number,
  values: Values,
  extra: readonly ExtraField[] = [],
): string[] {
  const { word, from } = wordAt(query, caret);
  const term = TERM.exec(word);
  const replaceWord = (text: string): string => query.slice(0, from) + text + query.slice(caret);
  if (term) {
    const [, field = '', operator = '', typed = ''] = term;
    return matching(values[field.toLowerCase()] ?? [], typed.replaceAll('"', '')).map((value) =>
      replaceWord(field + operator + quoted(value)),
    );
  }
  if (word === '') return [];
  const own = Object.entries(FIELDS).filter(([field]) => field.startsWith(word.toLowerCase()));
  return [...own, ...matchingFields(word, extra)]
    .slice(0, MAX_COMPLETIONS)
    .map(([field, operator]) => replaceWord(written(field) + operator));
}

const MIN_TYPED = 3;

const lowerStarts = (typed: string, start: string): boolean => typed.startsWith(start.toLowerCase());

/** The statistics of a metric, such as `loss/value.best`; of a setting, the setting itself. */
const statisticsOf = (field: ExtraField): readonly ExtraField[] =>
  field.name.includes('/')
    ? STATISTICS.map((statistic) => ({ ...field, name: `${field.name}.${statistic}` }))
    : [field];

/** Settings and metrics of which a part starts with the typed word, or whose path does, with their usual operators. */
function matchingFields(word: string, extra: readonly ExtraField[]): (readonly [string, string])[] {
  const typed = word.toLowerCase();
  if (typed.length < MIN_TYPED) return [];
  return extra
    .flatMap((field) => (lowerStarts(typed, `${field.name}.`) ? statisticsOf(field) : [field]))
    .filter(({ name }) => {
      const lower = name.toLowerCase();
      return lower.startsWith(typed) || lower.split(/[./]/).some((part) => part.startsWith(typed));
    })
    .map(({ name, kind }) => [name, kind === 'number' ? (name.includes('/') ? '>' : '=') : ':'] as const);
}
