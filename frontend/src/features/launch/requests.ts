/** The requests that the launch form sends. */
import { MAX_GROUP } from '@/lib/runBounds';
import type { FieldProblem } from '@/api/problem';
import type { Command } from '@/api/catalogue';
import type { CommandFields, ForkRequest, RunFields } from '@/api/runs';
import type { SweepRequest } from '@/api/sweeps';
import { shortEnvironmentName } from '@/lib/environments';
import { parseNumber } from '@/lib/format';
import { DEFAULT_PROJECT } from '@/lib/project';
import { isChanged, type ConfigField, type Section } from '@/lib/schema';
import { parseValues } from '@/lib/values';
import { nSeedsOf, rawOf, splitTags, type Draft } from './draft';

type Grid = NonNullable<RunFields['grid']>;

/** The fields that hold several values, with their values: one run for each combination. */
export const gridOf = (fields: readonly ConfigField[], draft: Draft): Grid =>
  Object.fromEntries(
    fields.flatMap((field) => {
      const { values } = parseValues(field, rawOf(draft, field));
      return values.length > 1 ? [[field.path, [...values] as Grid[string]]] : [];
    }),
  );

const nCombinations = (grid: Grid): number => Object.values(grid).reduce((n, values) => n * values.length, 1);

/** Whether the draft is started as a sweep, which needs several values in a field. */
export const isSweep = (fields: readonly ConfigField[], draft: Draft): boolean =>
  draft.sweep && Object.keys(gridOf(fields, draft)).length > 0;

/** The number of runs to start, at most: combinations of values times seeds. */
export function nRunsOf(fields: readonly ConfigField[], draft: Draft): number {
  const nSeeds = isSweep(fields, draft) ? parseNumber(draft.maxSeeds) : nSeedsOf(draft);
  return nCombinations(gridOf(fields, draft)) * nSeeds;
}

/** The group of the runs: the typed one, or for a grid one that names its fields; empty for none. */
export function groupOf(fields: readonly ConfigField[], draft: Draft): string {
  const paths = Object.keys(gridOf(fields, draft));
  if (draft.group.trim() || paths.length === 0) return draft.group.trim();
  const keys = paths.map((path) => path.split('.')[1]);
  const name = `${draft.algorithm} ${shortEnvironmentName(draft.environment)} by ${keys.join(', ')}`;
  return name.slice(0, MAX_GROUP);
}

const values = (fields: readonly ConfigField[], draft: Draft): Record<string, never> =>
  Object.fromEntries(
    fields.map((field) => [field.key, parseValues(field, rawOf(draft, field)).values[0] as never]),
  );

/** The request for a fork: it contains every field, for missing ones would be inherited from the parent. */
export function toForkRequest(
  fields: readonly ConfigField[],
  draft: Draft,
  checkpoint: string | null,
): ForkRequest {
  const section = (name: Section): Record<string, never> =>
    values(
      fields.filter((field) => field.section === name),
      draft,
    );
  return {
    checkpoint,
    config: section('config'),
    environment_config: section('environment_config'),
    stop: section('stop'),
    name: draft.name.trim() || null,
    seed: parseNumber(draft.firstSeed),
    device: draft.device,
    queue: draft.queue,
    host: draft.host || null,
    priority: parseNumber(draft.priority),
    group: draft.group.trim() || null,
    project: draft.project.trim() || null,
    tags: splitTags(draft.tags),
    notes: draft.notes,
  };
}

/** The request for new runs: it contains only changed fields, for the service knows the defaults. */
export function toRequest(fields: readonly ConfigField[], draft: Draft): RunFields {
  const grid = gridOf(fields, draft);
  const section = (name: Section): Record<string, never> =>
    values(
      fields.filter(
        (field) => field.section === name && !(field.path in grid) && isChanged(field, rawOf(draft, field)),
      ),
      draft,
    );
  const first = parseNumber(draft.firstSeed);
  const n = nSeedsOf(draft);
  const seeds = n === 1 ? { seed: first } : { seeds: Array.from({ length: n }, (_, index) => first + index) };
  const group = groupOf(fields, draft);
  return {
    algorithm: draft.algorithm,
    environment: draft.environment,
    config: section('config'),
    environment_config: section('environment_config'),
    stop: section('stop'),
    ...seeds,
    ...(Object.keys(grid).length > 0 ? { grid } : {}),
    ...(draft.name.trim() ? { name: draft.name.trim() } : {}),
    ...(group ? { group } : {}),
    ...(draft.host ? { host: draft.host } : {}),
    project: draft.project.trim() || DEFAULT_PROJECT,
    tags: splitTags(draft.tags),
    notes: draft.notes,
    device: draft.device,
    queue: draft.queue,
    priority: parseNumber(draft.priority),
  };
}

/** The request for runs of a command, which takes neither limits nor a device. */
export function toCommandRequest(
  command: Command,
  fields: readonly ConfigField[],
  draft: Draft,
): CommandFields {
  const {
    algorithm: _algorithm,
    environment: _environment,
    environment_config: _config,
    stop: _stop,
    device: _device,
    seed,
    seeds,
    origin: _origin,
    annealing_agent_steps: _annealing,
    ...request
  } = toRequest(fields, draft);
  const taken = command.has_seed ? { ...(seeds ? { seeds } : { seed }) } : {};
  return { ...request, ...taken, command: command.name };
}

/** The request for an estimate, without what that does not depend on: one run for each combination of values. */
export function toEstimateRequest(fields: readonly ConfigField[], draft: Draft): RunFields {
  const { seeds: _seeds, name: _name, group: _group, ...request } = toRequest(fields, draft);
  return { ...request, seed: 0, project: DEFAULT_PROJECT, tags: [], notes: '' };
}

/** The name of a sweep without a typed one. */
export const sweepName = ({ algorithm, environment }: Draft): string =>
  `${algorithm} on ${shortEnvironmentName(environment)}`;

/** The request for a sweep over the fields that hold several values; it chooses the seeds and names its runs. */
export function toSweepRequest(
  fields: readonly ConfigField[],
  draft: Draft,
  request: RunFields | CommandFields = toRequest(fields, draft),
): SweepRequest {
  const { seed: _seed, seeds: _seeds, grid, name, notes = '', group: _group, ...run } = request;
  const group = draft.group.trim();
  return {
    name: name ?? sweepName(draft),
    notes,
    run: { ...run, ...(group ? { group } : {}) },
    space: Object.fromEntries(Object.entries(grid ?? {}).map(([path, values]) => [path, { values }])),
    max_seeds: parseNumber(draft.maxSeeds),
    ...(draft.distinctSeeds ? { distinct_seeds: true } : {}),
  };
}

/** The errors of a sweep's request at the fields of the form. */
export const sweepProblems = (problems: readonly FieldProblem[]): FieldProblem[] =>
  problems.map(({ field, message }) => {
    if (field === 'max_seeds' || field === 'racing.initial_seeds') return { field: 'maxSeeds', message };
    if (field === 'space') return { field: '', message: `The sweep ${message}.` };
    return { field: field.replace(/^(run|space)\./, '').replace(/\.values(\.\d+)?$/, ''), message };
  });
