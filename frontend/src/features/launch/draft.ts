/** The state of the launch form. */
import type { Algorithm, Environment, Preset } from '@/api/catalogue';
import { MAX_NAME, MAX_RUNS } from '@/lib/runBounds';
import type { Run, RunFields, StopSpec } from '@/api/runs';
import schemas from '@/lib/schemas.json';
import type { StartSet } from '@/api/startSets';
import { parseNumber } from '@/lib/format';
import { offerFor, PONG } from '@/lib/offers';
import { readProject } from '@/lib/project';
import { nextBound } from '@/lib/run';
import { allFields, isChanged, toRaw, type ConfigField, type Raw, type Section } from '@/lib/schema';

export type Draft = {
  environment: string;
  algorithm: string;
  preset: string | null;
  /** Typed or preset values by path; fields that are not here have their default. */
  raw: Record<string, Raw>;
  name: string;
  group: string;
  project: string;
  tags: string;
  notes: string;
  firstSeed: string;
  nSeeds: string;
  /** Whether several combinations of values are started as a sweep, whose seeds are added in rounds. */
  sweep: boolean;
  /** Seeds of each combination of a sweep. */
  maxSeeds: string;
  /** Whether each combination of a sweep has seeds of its own. */
  distinctSeeds: boolean;
  device: 'auto' | 'cpu' | 'cuda';
  queue: 'cpu' | 'gpu';
  host: string;
  priority: string;
};

const PROTOCOL = 'config.evaluation_protocol';

export type Catalogue = { algorithms: readonly Algorithm[]; environments: readonly Environment[] };

/** A run needs a bound: the proposed one when no preset has any. */
const DEFAULT_AGENT_STEPS = 1_000_000;

export const environmentOf = ({ environments }: Catalogue, draft: Draft): Environment | undefined =>
  environments.find(({ id }) => id === draft.environment);

export const algorithmOf = ({ algorithms }: Catalogue, draft: Draft): Algorithm | undefined =>
  algorithms.find(({ id }) => id === draft.algorithm);

/** The algorithms that support an environment's observation and action spaces. */
export const algorithmsFor = ({ algorithms }: Catalogue, environment: Environment | undefined): Algorithm[] =>
  algorithms.filter(
    ({ observations, actions }) =>
      environment && observations.includes(environment.observation) && actions.includes(environment.actions),
  );

/** The presets of the algorithm for this environment. */
export function presetsOf(catalogue: Catalogue, draft: Draft): Preset[] {
  const environment = environmentOf(catalogue, draft);
  if (!environment) return [];
  const matches = (allowed: readonly string[], value: string): boolean =>
    allowed.length === 0 || allowed.includes(value);
  return (algorithmOf(catalogue, draft)?.presets ?? []).filter(
    ({ observation, actions, families, environments }) =>
      observation === environment.observation &&
      matches(actions, environment.actions) &&
      matches(families, environment.family) &&
      matches(environments, environment.id),
  );
}

/** All config fields of the algorithm in the environment. */
export function fieldsOf(catalogue: Catalogue, draft: Draft): ConfigField[] {
  const environment = environmentOf(catalogue, draft);
  const algorithm = algorithmOf(catalogue, draft);
  return environment && algorithm ? allFields(algorithm, environment, schemas.StopSpec) : [];
}

/** The fields, with the protocols that start from a verified start set of the environment. */
export function withStartSets(
  fields: ConfigField[],
  sets: readonly StartSet[] | undefined,
  environment: string,
): ConfigField[] {
  const protocols = (sets ?? [])
    .filter((set) => set.environment === environment && set.state === 'ready')
    .flatMap((set) => set.protocols);
  return protocols.length === 0
    ? fields
    : fields.map((field) =>
        field.path === PROTOCOL ? { ...field, choices: [...field.choices, ...protocols] } : field,
      );
}

const toRawByPath = (section: Section, values: Record<string, unknown>): Record<string, Raw> =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [`${section}.${key}`, toRaw(value)]));

const presetRaw = (preset: Preset | undefined): Record<string, Raw> =>
  preset
    ? {
        ...toRawByPath('config', preset.config),
        ...toRawByPath('environment_config', preset.environment_config),
        ...toRawByPath('stop', preset.stop),
      }
    : { 'stop.agent_steps': toRaw(DEFAULT_AGENT_STEPS) };

/** The values of the draft's preset, by path; the other fields have their defaults. */
export const baseOf = (catalogue: Catalogue, draft: Draft): Record<string, Raw> =>
  presetRaw(presetsOf(catalogue, draft).find(({ id }) => id === draft.preset));

/** The draft with the values of a preset; for null, with the defaults and a bound of agent steps. */
export function withPreset(catalogue: Catalogue, draft: Draft, id: string | null): Draft {
  const preset = presetsOf(catalogue, draft).find((candidate) => candidate.id === id);
  return { ...draft, preset: preset?.id ?? null, raw: presetRaw(preset) };
}

/** The draft with the home page's offer for its environment and algorithm, or with the first preset. */
function withProposedPreset(catalogue: Catalogue, draft: Draft): Draft {
  const presets = presetsOf(catalogue, draft);
  const offer = offerFor(draft.environment, draft.algorithm);
  if (!presets.some(({ id }) => id === offer?.preset))
    return withPreset(catalogue, draft, presets[0]?.id ?? null);
  const proposed = withPreset(catalogue, draft, offer?.preset ?? null);
  return { ...proposed, raw: { ...proposed.raw, ...toRawByPath('stop', offer?.stop ?? {}) } };
}

/** The draft with runs that are evaluated under this protocol, where the environment has it. */
function withProtocol(
  draft: Draft,
  environment: Environment | undefined,
  algorithm: Algorithm | undefined,
  protocol: string | undefined,
): Draft {
  if (!protocol || !environment?.evaluation_protocols.includes(protocol)) return draft;
  const defaultProtocol = environment.evaluation_protocols.includes(algorithm?.evaluation_protocol ?? '')
    ? algorithm?.evaluation_protocol
    : environment.evaluation_protocol;
  if (protocol === defaultProtocol && !(PROTOCOL in draft.raw)) return draft;
  return { ...draft, raw: { ...draft.raw, [PROTOCOL]: protocol } };
}

/** A draft in which nothing is chosen but what is trained. */
export const blankDraft = (environment: string, algorithm: string): Draft => ({
  environment,
  algorithm,
  preset: null,
  raw: {},
  name: '',
  group: '',
  project: readProject(),
  tags: '',
  notes: '',
  firstSeed: '0',
  nSeeds: '1',
  sweep: false,
  maxSeeds: '10',
  distinctSeeds: false,
  device: 'auto',
  queue: 'cpu',
  host: '',
  priority: '0',
});

/** A new draft for the requested environment and algorithm, where they exist and fit together. */
export function newDraft(
  catalogue: Catalogue,
  requested: { environment?: string; algorithm?: string; protocol?: string },
): Draft {
  const { environments } = catalogue;
  const environment =
    environments.find(({ id }) => id === requested.environment) ??
    environments.find(({ id }) => id === PONG.environment) ??
    environments[0];
  const supported = algorithmsFor(catalogue, environment);
  const named = (name: string | undefined) => supported.find(({ id }) => id === name);
  const algorithm = named(requested.algorithm) ?? named(offerFor(environment?.id)?.algorithm) ?? supported[0];
  const draft = withProposedPreset(catalogue, blankDraft(environment?.id ?? '', algorithm?.id ?? ''));
  return withProtocol(draft, environment, algorithm, requested.protocol);
}

/** The bounds for a fork of a run, extended where the run has reached them. */
function extendedStop(stop: StopSpec, { agent_steps, wall_time_s, score }: Run): StopSpec {
  const extended = { ...stop };
  if (stop.agent_steps != null) extended.agent_steps = nextBound(stop.agent_steps, agent_steps);
  if (stop.wall_time_s != null) extended.wall_time_s = nextBound(stop.wall_time_s, wall_time_s ?? 0);
  // A score already reached would end the fork immediately, and there is no sensible higher one to propose.
  if (stop.score != null && score != null && score >= stop.score) extended.score = null;
  return extended;
}

/** A draft filled in from a run, to copy or to fork it. */
export function draftFrom(catalogue: Catalogue, run: Run, purpose: 'copy' | 'fork' = 'copy'): Draft {
  const spec = run.spec as unknown as RunFields;
  const raw = {
    ...toRawByPath('config', spec.config),
    ...toRawByPath('environment_config', spec.environment_config),
    ...toRawByPath('stop', purpose === 'fork' ? extendedStop(spec.stop, run) : spec.stop),
  };
  const draft: Draft = {
    ...newDraft(catalogue, spec),
    environment: run.environment,
    algorithm: run.algorithm,
    preset: null,
    raw,
    name: `${Array.from(run.name)
      .slice(0, MAX_NAME - purpose.length - 1)
      .join('')} ${purpose}`,
    group: run.group ?? '',
    project: run.project,
    tags: run.tags.join(', '),
    notes: purpose === 'fork' ? '' : run.notes,
    firstSeed: String(run.seed),
    device: spec.device,
    queue: spec.queue,
    host: run.wanted_host ?? '',
    priority: String(run.priority),
  };
  return { ...draft, raw: onlyChanged(fieldsOf(catalogue, draft), raw) };
}

const onlyChanged = (fields: readonly ConfigField[], raw: Record<string, Raw>): Record<string, Raw> =>
  Object.fromEntries(
    fields.flatMap((field) => {
      const value = raw[field.path];
      return value !== undefined && isChanged(field, value) ? [[field.path, value]] : [];
    }),
  );

/** The draft in another environment: its values are kept if algorithm and preset suit that environment too. */
export function withEnvironment(catalogue: Catalogue, draft: Draft, id: string): Draft {
  const before = environmentOf(catalogue, draft);
  const next = { ...draft, environment: id };
  const environment = environmentOf(catalogue, next);
  const supported = algorithmsFor(catalogue, environment);
  const isSupported = supported.some((algorithm) => algorithm.id === draft.algorithm);
  const presetFits =
    draft.preset === null || presetsOf(catalogue, next).some((preset) => preset.id === draft.preset);
  if (isSupported && before && environment?.observation === before.observation && presetFits) {
    const known = new Set(fieldsOf(catalogue, next).map(({ path }) => path));
    return {
      ...next,
      raw: Object.fromEntries(Object.entries(draft.raw).filter(([path]) => known.has(path))),
    };
  }
  const algorithm = isSupported ? draft.algorithm : supported[0]?.id;
  return withProposedPreset(catalogue, { ...next, algorithm: algorithm ?? draft.algorithm });
}

export const withAlgorithm = (catalogue: Catalogue, draft: Draft, algorithm: string): Draft =>
  withProposedPreset(catalogue, { ...draft, algorithm });

export const rawOf = (draft: Draft, field: ConfigField): Raw => draft.raw[field.path] ?? toRaw(field.default);

/** The number of seeds; 1 while it is invalid. */
export function nSeedsOf({ nSeeds }: Draft): number {
  const n = parseNumber(nSeeds);
  return Number.isInteger(n) && n >= 1 && n <= MAX_RUNS ? n : 1;
}

export const splitTags = (text: string): string[] =>
  text
    .split(',')
    .map((tag) => tag.trim())
    .filter(Boolean);
