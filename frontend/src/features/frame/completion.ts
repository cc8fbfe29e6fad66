/** What may come next in a query such as `algorithm:paac score>10`. */

export type Values = Readonly<Record<string, readonly string[]>>;

/** The fields of the service's query language, and the sign that usually follows each. */
export const FIELDS: Readonly<Record<string, ':' | '>'>> = {
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

const MOST = 8;

/** The word under the caret, and where it begins. */
function wordAt(query: string, caret: number): { word: string; from: number } {
  const before = query.slice(0, caret);
  const from = Math.max(before.lastIndexOf(' '), before.lastIndexOf('(')) + 1;
  return { word: before.slice(from), from };
}

const quoted = (value: string): string => (/[\s()"]/.test(value) ? `"${value}"` : value);

const starts = (candidates: readonly string[], typed: string): string[] => {
  const low = typed.toLowerCase();
  return candidates.filter((each) => each.toLowerCase().includes(low) && each !== typed).slice(0, MOST);
};

const TERM = /^([a-z_]+)(:|=|!=)(.*)$/i;

/** Whether the word under the caret asks for more: it is no question yet, or not the one that is meant. */
export function isUnfinished(query: string, caret: number, values: Values): boolean {
  const { word } = wordAt(query, caret);
  if (/^[a-z_]+(:|=|!=|>=?|<=?)$/i.test(word)) return true;
  const [, field = '', , typed = ''] = TERM.exec(word.toLowerCase()) ?? [];
  // A part of a world's name is enough.
  if (field === 'environment' || values[field]?.some((value) => value.toLowerCase() === typed)) return false;
  return complete(query, caret, values).length > 0;
}

/** Whole queries that go on from what is typed. */
export function complete(query: string, caret: number, values: Values): string[] {
  const { word, from } = wordAt(query, caret);
  const found = TERM.exec(word);
  const put = (text: string): string => query.slice(0, from) + text + query.slice(caret);
  if (found) {
    const [, field = '', sign = '', typed = ''] = found;
    return starts(values[field.toLowerCase()] ?? [], typed.replaceAll('"', '')).map((value) =>
      put(field + sign + quoted(value)),
    );
  }
  if (word === '') return [];
  return Object.entries(FIELDS)
    .filter(([field]) => field.startsWith(word.toLowerCase()))
    .map(([field, sign]) => put(field + sign));
}
