/** Reads the catalogue's JSON Schemas as form fields. Nothing here knows any algorithm. */

import { parseNumber } from './number';

export type Section = 'config' | 'environment_config' | 'stop';

export type Setting = {
  /** As the service names it in errors, such as `config.n_e`. */
  path: string;
  section: Section;
  key: string;
  title: string;
  help: string;
  symbol: string | null;
  unit: string | null;
  group: string;
  kind: 'integer' | 'number' | 'boolean' | 'choice' | 'text';
  choices: string[];
  /** Inclusive and exclusive bounds. */
  min: number | null;
  above: number | null;
  max: number | null;
  below: number | null;
  optional: boolean;
  /** May be changed while the run trains. */
  live: boolean;
  fallback: unknown;
};

/** The groups in the order in which they are shown. */
const GROUPS: readonly string[] = [
  'environment',
  'network',
  'optimisation',
  'exploration',
  'parallelism',
  'evaluation',
  'stopping',
];

export const groupTitle = (group: string): string => group.charAt(0).toUpperCase() + group.slice(1);

type Json = Record<string, unknown>;

const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);
const number = (value: unknown): number | null => (typeof value === 'number' ? value : null);

/** `anyOf: [T, null]` is an optional T. */
function unwrap(property: Json): { type: Json; optional: boolean } {
  if (!Array.isArray(property.anyOf)) return { type: property, optional: false };
  const parts = property.anyOf.filter(isJson);
  const type = parts.find((part) => part.type !== 'null') ?? {};
  return { type, optional: parts.some((part) => part.type === 'null') };
}

function kindOf(type: Json): Setting['kind'] {
  if (Array.isArray(type.enum)) return 'choice';
  if (type.type === 'integer' || type.type === 'number' || type.type === 'boolean') return type.type;
  return 'text';
}

/** The fields of one schema; `defaults` stand in for the schema's own where they differ. */
export function readSettings(schema: unknown, section: Section, defaults: Json = {}): Setting[] {
  const properties = isJson(schema) && isJson(schema.properties) ? schema.properties : {};
  return Object.entries(properties).flatMap(([key, property]) => {
    if (!isJson(property)) return [];
    const { type, optional } = unwrap(property);
    return {
      path: `${section}.${key}`,
      section,
      key,
      title: text(property.title) ?? key,
      help: text(property.description) ?? '',
      symbol: text(property.symbol),
      unit: text(property.unit),
      group: text(property.group) ?? section,
      kind: kindOf(type),
      choices: Array.isArray(type.enum) ? type.enum.map(String) : [],
      min: number(type.minimum),
      above: number(type.exclusiveMinimum),
      max: number(type.maximum),
      below: number(type.exclusiveMaximum),
      optional,
      live: property.live === true,
      fallback: key in defaults ? defaults[key] : (property.default ?? null),
    };
  });
}

type Described = { config_schema: unknown };

/** Every setting that an algorithm has in a world, group after group, with the defaults it has there. */
export function allSettings(
  algorithm: Described & { defaults: Record<string, Json> },
  world: Described & { defaults: Json; observation: string; actions?: string; config_defaults?: Json },
  stopSchema: unknown,
): Setting[] {
  const kind = world.actions === 'continuous' ? `continuous ${world.observation}` : world.observation;
  const all = [
    ...readSettings(world.config_schema, 'environment_config', world.defaults),
    ...readSettings(algorithm.config_schema, 'config', {
      ...algorithm.defaults[kind],
      ...world.config_defaults,
    }),
    ...readSettings(stopSchema, 'stop'),
  ];
  return all.sort((a, b) => place(a.group) - place(b.group));
}

const place = (group: string): number => (GROUPS.includes(group) ? GROUPS.indexOf(group) : GROUPS.length);

const shown = (value: number): string =>
  Math.abs(value) >= 1e7
    ? value.toExponential().replace('e+', 'e')
    : value.toLocaleString('en', { maximumFractionDigits: 8 });

/** The bounds in words, such as "1 to 512" or "above 0, at most 10". */
export function boundsText({ min, above, max, below }: Setting): string {
  if (min !== null && max !== null) return `${shown(min)} to ${shown(max)}`;
  return [
    min !== null && `at least ${shown(min)}`,
    above !== null && `above ${shown(above)}`,
    max !== null && `at most ${shown(max)}`,
    below !== null && `below ${shown(below)}`,
  ]
    .filter(Boolean)
    .join(', ');
}

/** What is typed into a field: text, or a switch's position. */
export type Raw = string | boolean;

export type Parsed = { value: unknown; problem: null } | { value: undefined; problem: string };

const ok = (value: unknown): Parsed => ({ value, problem: null });
const bad = (problem: string): Parsed => ({ value: undefined, problem });

/** What a field's text means, or what is wrong with it. */
export function parseRaw(setting: Setting, raw: Raw): Parsed {
  if (typeof raw === 'boolean') return ok(raw);
  if (raw.trim() === '') return setting.optional ? ok(null) : bad('Give a value.');
  if (setting.kind === 'choice') {
    return setting.choices.includes(raw) ? ok(raw) : bad(`Choose one of ${setting.choices.join(', ')}.`);
  }
  if (setting.kind === 'text') return ok(raw);
  const value = parseNumber(raw);
  if (!Number.isFinite(value)) {
    return bad(raw.includes(',') ? 'Give a number; decimals follow a point.' : 'Give a number.');
  }
  if (setting.kind === 'integer' && !Number.isInteger(value)) return bad('Give a whole number.');
  const { min, above, max, below } = setting;
  const outside =
    (min !== null && value < min) ||
    (above !== null && value <= above) ||
    (max !== null && value > max) ||
    (below !== null && value >= below);
  return outside ? bad(`Must be ${boundsText(setting)}.`) : ok(value);
}

/** A value as it would be typed. */
export function toRaw(value: unknown): Raw {
  if (typeof value === 'boolean') return value;
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') {
    return Number.isInteger(value) && Math.abs(value) >= 1e4 ? value.toLocaleString('en') : String(value);
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Whether a field holds something other than its default. */
export function isChanged(setting: Setting, raw: Raw): boolean {
  const { value, problem } = parseRaw(setting, raw);
  return problem !== null || value !== setting.fallback;
}
