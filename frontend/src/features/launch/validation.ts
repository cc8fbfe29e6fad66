/** Validation of the launch form before it is sent, and a summary of its errors. */
import type { FieldProblem } from '@/api/problem';
import {
  MAX_GROUP,
  MAX_NAME,
  MAX_NOTES,
  MAX_PRIORITY,
  MAX_RUNS,
  MAX_SEEDS,
  MAX_SEED,
  MAX_TAG,
  MAX_TAGS,
  MIN_PRIORITY,
} from '@/lib/runBounds';
import { projectProblem } from '@/lib/project';
import { formatInteger, parseNumber } from '@/lib/format';
import { groupTitle, parseRaw, type ConfigField } from '@/lib/schema';
import { parseValues } from '@/lib/values';
import { rawOf, splitTags, type Draft } from './draft';
import { isSweep, nRunsOf } from './requests';

/** Number of seeds of each combination that a race begins with. */
export const MIN_SWEEP_SEEDS = 3;

const integerError = (raw: string, min: number, max: number): string | null => {
  const value = parseNumber(raw);
  return Number.isInteger(value) && value >= min && value <= max
    ? null
    : `Enter a whole number from ${formatInteger(min)} to ${formatInteger(max)}.`;
};

/** The length in characters, as the service counts it. */
const lengthOf = (text: string): number => Array.from(text).length;

const lengthError = (text: string, max: number): string | null =>
  lengthOf(text) > max
    ? `At most ${formatInteger(max)} characters are allowed; this has ${formatInteger(lengthOf(text))}.`
    : null;

function tagsError(tags: readonly string[]): string | null {
  if (tags.length > MAX_TAGS) return `At most ${MAX_TAGS} tags are allowed; these are ${tags.length}.`;
  if (tags.some((tag) => /["\\]/.test(tag))) return 'Tags must not contain quotes or backslashes.';
  const long = tags.find((tag) => lengthOf(tag) > MAX_TAG);
  return long ? `A tag may have at most ${MAX_TAG} characters; one has ${lengthOf(long)}.` : null;
}

const isBlank = (draft: Draft, field: ConfigField): boolean => String(rawOf(draft, field)).trim() === '';

/** All errors of the draft that can be found without the service; a fork takes one value a field. */
export function validate(fields: readonly ConfigField[], draft: Draft, isFork = false): FieldProblem[] {
  const errors = fields.flatMap((field) => {
    const { error } = (isFork ? parseRaw : parseValues)(field, rawOf(draft, field));
    return error === null ? [] : { field: field.path, message: error };
  });
  const add = (field: string, message: string | null): void => {
    if (message) errors.push({ field, message });
  };
  const bounds = fields.filter(({ section }) => section === 'stop');
  const schedule = fields.find(({ path }) => path === 'config.learning_rate_schedule');
  const steps = bounds.find(({ key }) => key === 'agent_steps');
  if (bounds.length > 0 && bounds.every((field) => isBlank(draft, field))) {
    add('stop', 'Set at least one stop condition.');
  } else if (steps && schedule && rawOf(draft, schedule) === 'linear' && isBlank(draft, steps)) {
    add(
      steps.path,
      'The learning rate is annealed linearly to 0 at this limit. Enter one, or set Learning rate schedule to constant.',
    );
  }
  const nRuns = nRunsOf(fields, draft);
  const sweep = !isFork && isSweep(fields, draft);
  if (sweep) add('maxSeeds', integerError(draft.maxSeeds, MIN_SWEEP_SEEDS, MAX_SEEDS));
  add(
    'nSeeds',
    sweep
      ? null
      : nRuns > MAX_RUNS
        ? `This would start ${formatInteger(nRuns)} runs; at most ${MAX_RUNS} can be started together. Enter fewer values or seeds, or start a sweep.`
        : integerError(draft.nSeeds, 1, MAX_RUNS),
  );
  if (!sweep) add('seed', integerError(draft.firstSeed, 0, MAX_SEED));
  add('name', lengthError(draft.name.trim(), MAX_NAME));
  add('group', lengthError(draft.group.trim(), MAX_GROUP));
  add('project', projectProblem(draft.project.trim()));
  add('tags', tagsError(splitTags(draft.tags)));
  add('notes', lengthError(draft.notes, MAX_NOTES));
  add('priority', integerError(draft.priority, MIN_PRIORITY, MAX_PRIORITY));
  return errors;
}

/** The titles of the fields outside the config. */
const TITLES: Readonly<Record<string, string>> = {
  checkpoint: 'Checkpoint',
  name: 'Name',
  seed: 'Seed',
  seeds: 'Seed',
  nSeeds: 'Seeds',
  maxSeeds: 'Seeds of each combination, at most',
  tags: 'Tags',
  group: 'Group',
  project: 'Project',
  notes: 'Notes',
  queue: 'Queue',
  host: 'Host',
  device: 'Device',
  priority: 'Priority',
};

/** The title of a field, or of the group that shows the errors of a whole section. */
function titleOf(fields: readonly ConfigField[], path: string): string | undefined {
  const root = path.split('.')[0] ?? '';
  const group = fields.find(({ section }) => section === path)?.group;
  return fields.find((field) => field.path === path)?.title ?? (group && groupTitle(group)) ?? TITLES[root];
}

/** Names the invalid fields, which show their own messages; messages without a field are included in full. */
export function errorSummary(fields: readonly ConfigField[], errors: readonly FieldProblem[]): string {
  const titles = new Set<string>();
  const messages = new Set<string>();
  for (const { field, message } of errors) {
    const title = titleOf(fields, field);
    // The input for the number of seeds has no room for a message.
    if (field === 'nSeeds') messages.add(`${title}: ${message}`);
    else if (title) titles.add(title);
    else messages.add(field ? `${field}: ${message}` : message);
  }
  const named = titles.size > 0 ? [`Check these fields: ${[...titles].join(', ')}.`] : [];
  return [...messages, ...named].join(' ');
}
