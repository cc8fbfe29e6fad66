/** What the form holds, and the request it becomes. */
import type { Algorithm, Environment, Preset } from '@/api/catalog';
import type { FieldProblem } from '@/api/problem';
import type { ForkRequest } from '@/api/fork';
import type { Run, RunFields, StopSpec } from '@/api/runs';
import schemas from '@/api/schemas.json';
import { nextBound } from '@/lib/bound';
import { formatWhole } from '@/lib/format';
import { parseNumber } from '@/lib/number';
import {
  groupTitle,
  allSettings,
  isChanged,
  parseRaw,
  toRaw,
  type Raw,
  type Section,
  type Setting,
} from '@/lib/schema';

export type Draft = {
  environment: string;
  algorithm: string;
  preset: string | null;
  /** What was typed or preset, by path; a field that is not here holds its default. */
  raw: Record<string, Raw>;
  name: string;
  group: string;
  tags: string;
  notes: string;
  firstSeed: string;
  nSeeds: string;
  device: 'auto' | 'cpu' | 'cuda';
  queue: 'cpu' | 'gpu';
  host: string;
  priority: string;
};

export type Catalogue = { algorithms: readonly Algorithm[]; environments: readonly Environment[] };

const FIRST_WORLD = 'ALE/Pong-v5';
/** A run needs a bound; where no preset brings one, this is what the form proposes. */
const FIRST_BOUND_AGENT_STEPS = 1_000_000;
export const MAX_SEEDS = 100;
const MAX_SEED = 2 ** 31 - 1;
const MAX_NAME = 200;
const MAX_NOTES = 20_000;
const MAX_TAGS = 50;
const MAX_TAG = 50;

export const worldOf = ({ environments }: Catalogue, draft: Draft): Environment | undefined =>
  environments.find(({ id }) => id === draft.environment);

export const algorithmOf = ({ algorithms }: Catalogue, draft: Draft): Algorithm | undefined =>
  algorithms.find(({ id }) => id === draft.algorithm);

/** The algorithms that can learn in this world: those that see what it shows and choose what it takes. */
export const algorithmsFor = ({ algorithms }: Catalogue, world: Environment | undefined): Algorithm[] =>
  algorithms.filter(
    ({ observations, actions }) =>
      world && observations.includes(world.observation) && actions.includes(world.actions),
  );

/** The presets of the algorithm that are meant for this kind of world. */
export function presetsOf(catalogue: Catalogue, draft: Draft): Preset[] {
  const world = worldOf(catalogue, draft);
  return (algorithmOf(catalogue, draft)?.presets ?? []).filter(
    ({ observation, families }) =>
      observation === world?.observation && (families.length === 0 || families.includes(world.family)),
  );
}

/** Every field that this algorithm in this world has. */
export function settingsOf(catalogue: Catalogue, draft: Draft): Setting[] {
  const world = worldOf(catalogue, draft);
  const algorithm = algorithmOf(catalogue, draft);
  return world && algorithm ? allSettings(algorithm, world, schemas.StopSpec) : [];
}

const flat = (section: Section, values: Record<string, unknown>): Record<string, Raw> =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [`${section}.${key}`, toRaw(value)]));

const presetRaw = (preset: Preset | undefined): Record<string, Raw> =>
  preset
    ? {
        ...flat('config', preset.config),
        ...flat('environment_config', preset.environment_config),
        ...flat('stop', preset.stop),
      }
    : { 'stop.agent_steps': toRaw(FIRST_BOUND_AGENT_STEPS) };

/** The draft with the settings of a preset, or with the defaults alone. */
export function withPreset(catalogue: Catalogue, draft: Draft, id: string | null): Draft {
  const preset = presetsOf(catalogue, draft).find((each) => each.id === id);
  return { ...draft, preset: preset?.id ?? null, raw: presetRaw(preset) };
}

const withFirstPreset = (catalogue: Catalogue, draft: Draft): Draft =>
  withPreset(catalogue, draft, presetsOf(catalogue, draft)[0]?.id ?? null);

/** A new form: the asked world, or Pong. */
export function newDraft(catalogue: Catalogue, asked: { environment?: string; algorithm?: string }): Draft {
  const world =
    catalogue.environments.find(({ id }) => id === asked.environment) ??
    catalogue.environments.find(({ id }) => id === FIRST_WORLD) ??
    catalogue.environments[0];
  const fitting = algorithmsFor(catalogue, world);
  const algorithm = fitting.find(({ id }) => id === asked.algorithm) ?? fitting[0];
  return withFirstPreset(catalogue, {
    environment: world?.id ?? '',
    algorithm: algorithm?.id ?? '',
    preset: null,
    raw: {},
    name: '',
    group: '',
    tags: '',
    notes: '',
    firstSeed: '0',
    nSeeds: '1',
    device: 'auto',
    queue: 'cpu',
    host: '',
    priority: '0',
  });
}

/** The bounds of a run that goes on from where this one is. */
function furtherStop(stop: StopSpec, { agent_steps, wall_time_s, score }: Run): StopSpec {
  const further = { ...stop };
  if (stop.agent_steps != null) further.agent_steps = nextBound(stop.agent_steps, agent_steps);
  if (stop.wall_time_s != null) further.wall_time_s = nextBound(stop.wall_time_s, wall_time_s ?? 0);
  // A score it has reached would end it at once; how much higher it can go nobody knows.
  if (stop.score != null && score != null && score >= stop.score) further.score = null;
  return further;
}

/** A form filled in from a run. */
export function draftFrom(catalogue: Catalogue, run: Run, what: 'copy' | 'fork' = 'copy'): Draft {
  const spec = run.spec as unknown as RunFields;
  const draft = newDraft(catalogue, spec);
  const raw = {
    ...flat('config', spec.config),
    ...flat('environment_config', spec.environment_config),
    ...flat('stop', what === 'fork' ? furtherStop(spec.stop, run) : spec.stop),
  };
  const filled: Draft = {
    ...draft,
    environment: run.environment,
    algorithm: run.algorithm,
    preset: null,
    raw,
    name: `${run.name.slice(0, 190)} ${what}`,
    group: run.group ?? '',
    tags: run.tags.join(', '),
    notes: run.notes,
    firstSeed: String(run.seed),
    device: spec.device,
    queue: spec.queue,
    host: run.wanted_host ?? '',
    priority: String(run.priority),
  };
  return { ...filled, raw: onlyChanged(settingsOf(catalogue, filled), raw) };
}

const onlyChanged = (settings: readonly Setting[], raw: Record<string, Raw>): Record<string, Raw> =>
  Object.fromEntries(
    settings.flatMap((setting) => {
      const typed = raw[setting.path];
      return typed !== undefined && isChanged(setting, typed) ? [[setting.path, typed]] : [];
    }),
  );

/** The draft in another world: settings that still mean something stay, but for a preset of other worlds. */
export function withWorld(catalogue: Catalogue, draft: Draft, environment: string): Draft {
  const before = worldOf(catalogue, draft);
  const next = { ...draft, environment };
  const world = worldOf(catalogue, next);
  const fitting = algorithmsFor(catalogue, world);
  const fits = fitting.some(({ id }) => id === draft.algorithm);
  const suits = draft.preset === null || presetsOf(catalogue, next).some(({ id }) => id === draft.preset);
  if (fits && before && world?.observation === before.observation && suits) {
    const known = new Set(settingsOf(catalogue, next).map(({ path }) => path));
    return {
      ...next,
      raw: Object.fromEntries(Object.entries(draft.raw).filter(([path]) => known.has(path))),
    };
  }
  const algorithm = fits ? draft.algorithm : fitting[0]?.id;
  return withFirstPreset(catalogue, { ...next, algorithm: algorithm ?? draft.algorithm });
}

export const withAlgorithm = (catalogue: Catalogue, draft: Draft, algorithm: string): Draft =>
  withFirstPreset(catalogue, { ...draft, algorithm });

export const rawOf = (draft: Draft, setting: Setting): Raw =>
  draft.raw[setting.path] ?? toRaw(setting.fallback);

const wholeIn = (raw: string, min: number, max: number, what: string): string | null => {
  const value = parseNumber(raw);
  return Number.isInteger(value) && value >= min && value <= max
    ? null
    : `${what} is a whole number from ${min.toLocaleString('en')} to ${max.toLocaleString('en')}.`;
};

/** How many runs are asked for; one while that cannot be told. */
export const nRunsOf = ({ nSeeds }: Draft): number =>
  wholeIn(nSeeds, 1, MAX_SEEDS, '') === null ? parseNumber(nSeeds) : 1;

const splitTags = (text: string): string[] =>
  text
    .split(',')
    .map((tag) => tag.trim())
    .filter(Boolean);

const lengthOf = (text: string): number => Array.from(text).length;

const atMost = (text: string, max: number, what: string): string | null =>
  lengthOf(text) > max
    ? `${what} has at most ${formatWhole(max)} characters; this has ${formatWhole(lengthOf(text))}.`
    : null;

function tagProblem(tags: readonly string[]): string | null {
  if (tags.length > MAX_TAGS) return `A run has at most ${MAX_TAGS} tags; these are ${tags.length}.`;
  if (tags.some((tag) => /["\\]/.test(tag))) return 'A tag has no quotes and no backslashes.';
  return tags.map((tag) => atMost(tag, MAX_TAG, 'A tag')).find((problem) => problem !== null) ?? null;
}

/** Everything wrong with the draft that can be told before asking the service. */
export function problemsOf(settings: readonly Setting[], draft: Draft): FieldProblem[] {
  const found = settings.flatMap((setting) => {
    const { problem } = parseRaw(setting, rawOf(draft, setting));
    return problem === null ? [] : { field: setting.path, message: problem };
  });
  const add = (field: string, message: string | null): void => {
    if (message) found.push({ field, message });
  };
  const bounds = settings.filter(({ section }) => section === 'stop');
  if (bounds.every((setting) => String(rawOf(draft, setting)).trim() === '')) {
    add('stop', 'Give at least one bound: a run must know when it is finished.');
  }
  add('nSeeds', wholeIn(draft.nSeeds, 1, MAX_SEEDS, 'The number of seeds'));
  add('seed', wholeIn(draft.firstSeed, 0, MAX_SEED, 'A seed'));
  add('name', atMost(draft.name.trim(), MAX_NAME, 'A name'));
  add('group', atMost(draft.group.trim(), MAX_NAME, 'A group'));
  add('tags', tagProblem(splitTags(draft.tags)));
  add('notes', atMost(draft.notes, MAX_NOTES, 'A note'));
  add('priority', wholeIn(draft.priority, -100, 100, 'A priority'));
  return found;
}

/** The fields beside the settings, as the page calls them. */
const TITLES: Readonly<Record<string, string>> = {
  checkpoint: 'Checkpoint',
  name: 'Name',
  seed: 'Seed',
  seeds: 'Seed',
  tags: 'Tags',
  group: 'Group',
  notes: 'Notes',
  queue: 'Queue',
  host: 'Host',
  device: 'Device',
  priority: 'Priority',
};

/** What the page calls a field, or the group at whose head it tells of a whole section; else nothing. */
function titleOf(settings: readonly Setting[], field: string): string | undefined {
  const root = field.split('.')[0] ?? '';
  const group = settings.find(({ section }) => section === field)?.group;
  return settings.find(({ path }) => path === field)?.title ?? (group && groupTitle(group)) ?? TITLES[root];
}

/** Names the fields at fault, each of which tells what is wrong; what has no field that tells is told here. */
export function faultsText(settings: readonly Setting[], faults: readonly FieldProblem[]): string {
  const titles = new Set<string>();
  const told = new Set<string>();
  for (const { field, message } of faults) {
    const title = titleOf(settings, field);
    if (title) titles.add(title);
    // The field of seeds has no room to tell it.
    else told.add(field && field !== 'nSeeds' ? `${field}: ${message}` : message);
  }
  const named = titles.size > 0 ? [`Another value is needed: ${[...titles].join(', ')}.`] : [];
  return [...told, ...named].join(' ');
}

const section = (name: Section, settings: readonly Setting[], draft: Draft): Record<string, never> =>
  Object.fromEntries(
    settings
      .filter((setting) => setting.section === name && isChanged(setting, rawOf(draft, setting)))
      .map((setting) => [setting.key, parseRaw(setting, rawOf(draft, setting)).value as never]),
  );

const allOf = (name: Section, settings: readonly Setting[], draft: Draft): Record<string, never> =>
  Object.fromEntries(
    settings
      .filter((setting) => setting.section === name)
      .map((setting) => [setting.key, parseRaw(setting, rawOf(draft, setting)).value as never]),
  );

/** The request for a fork: every setting, for what it leaves out would stay as the parent has it. */
export function toForkRequest(
  settings: readonly Setting[],
  draft: Draft,
  checkpoint: string | null,
): ForkRequest {
  return {
    checkpoint,
    config: allOf('config', settings, draft),
    environment_config: allOf('environment_config', settings, draft),
    stop: allOf('stop', settings, draft),
    name: draft.name.trim() || null,
    seed: parseNumber(draft.firstSeed),
    device: draft.device,
    queue: draft.queue,
    host: draft.host || null,
    priority: parseNumber(draft.priority),
    group: draft.group.trim() || null,
    tags: splitTags(draft.tags),
    notes: draft.notes,
  };
}

/** The request: only what differs from the defaults, which are the service's to know. */
export function toRequest(settings: readonly Setting[], draft: Draft): RunFields {
  const first = parseNumber(draft.firstSeed);
  const n = nRunsOf(draft);
  const seeds = n === 1 ? { seed: first } : { seeds: Array.from({ length: n }, (_, index) => first + index) };
  return {
    algorithm: draft.algorithm,
    environment: draft.environment,
    config: section('config', settings, draft),
    environment_config: section('environment_config', settings, draft),
    stop: section('stop', settings, draft),
    ...seeds,
    ...(draft.name.trim() ? { name: draft.name.trim() } : {}),
    ...(draft.group.trim() ? { group: draft.group.trim() } : {}),
    ...(draft.host ? { host: draft.host } : {}),
    tags: splitTags(draft.tags),
    notes: draft.notes,
    device: draft.device,
    queue: draft.queue,
    priority: parseNumber(draft.priority),
  } as RunFields;
}
