/**
 * Converts the catalogue's JSON Schemas to form fields, for any algorithm and environment. Hand-written, because
 * libraries that draw forms from schemas have no place for units, the papers' symbols and presets.
 */

import { parseNumber } from './format';

export type Section = 'config' | 'environment_config' | 'stop';

export type ConfigField = {
  /** The field's path in errors of the service, such as `config.n_e`. */
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
  /** What a choice beyond those must match; null if there is no other. */
  pattern: string | null;
  /** Inclusive and exclusive bounds. */
  min: number | null;
  above: number | null;
  max: number | null;
  below: number | null;
  optional: boolean;
  /** Whether it may be changed while the run trains. */
  live: boolean;
  /** Whether it determines the shapes of the network's parameters, so that a fork keeps it. */
  shape: boolean;
  /** Whether the form shows it without unfolding all fields. */
  common: boolean;
  /** The value of a field that is not set. */
  default: unknown;
};

/** The groups in display order. */
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

/** `anyOf: [T, null]` is an optional T; `anyOf: [choices, pattern]` has choices that are not listed. */
function unwrap(property: Json): { type: Json; optional: boolean; pattern: string | null } {
  if (!Array.isArray(property.anyOf)) return { type: property, optional: false, pattern: null };
  const parts = property.anyOf.filter(isJson);
  const type = parts.find((part) => part.type !== 'null') ?? {};
  const pattern = text(parts.find((part) => part !== type && 'pattern' in part)?.pattern);
  return { type, optional: parts.some((part) => part.type === 'null'), pattern };
}

function kindOf(type: Json): ConfigField['kind'] {
  if (Array.isArray(type.enum)) return 'choice';
  if (type.type === 'integer' || type.type === 'number' || type.type === 'boolean') return type.type;
  return 'text';
}

/** The fields of one schema; `defaults` take precedence over the schema's own. */
export function readFields(schema: unknown, section: Section, defaults: Json = {}): ConfigField[] {
  const properties = isJson(schema) && isJson(schema.properties) ? schema.properties : {};
  return Object.entries(properties).flatMap(([key, property]) => {
    if (!isJson(property)) return [];
    const { type, optional, pattern } = unwrap(property);
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
      pattern,
      min: number(type.minimum),
      above: number(type.exclusiveMinimum),
      max: number(type.maximum),
      below: number(type.exclusiveMaximum),
      optional,
      live: property.live === true,
      shape: property.shape === true,
      common: section === 'stop' || property.common === true,
      default: key in defaults ? defaults[key] : (property.default ?? null),
    };
  });
}

type WithSchema = { config_schema: unknown };

/** All fields of an algorithm in an environment, sorted by group, with the defaults of that combination. */
export function allFields(
  algorithm: WithSchema & { defaults: Record<string, Json> },
  environment: WithSchema & {
    defaults: Json;
    observation: string;
    actions?: string;
    config_defaults?: Json;
  },
  stopSchema: unknown,
): ConfigField[] {
  const { observation, actions, config_schema, defaults, config_defaults } = environment;
  const kind = actions === 'continuous' ? `continuous ${observation}` : observation;
  const all = [
    ...readFields(config_schema, 'environment_config', defaults),
    ...readFields(algorithm.config_schema, 'config', { ...algorithm.defaults[kind], ...config_defaults }),
    ...readFields(stopSchema, 'stop'),
  ];
  return all.sort((a, b) => groupIndex(a.group) - groupIndex(b.group));
}

const groupIndex = (group: string): number =>
  GROUPS.includes(group) ? GROUPS.indexOf(group) : GROUPS.length;

const formatBound = (value: number): string =>
  Math.abs(value) >= 1e7
    ? value.toExponential().replace('e+', 'e')
    : value.toLocaleString('en', { maximumFractionDigits: 8 });

/** The bounds as text, such as "1 to 512" or "above 0, at most 10". */
export function boundsText({ min, above, max, below }: ConfigField): string {
  if (min !== null && max !== null) return `${formatBound(min)} to ${formatBound(max)}`;
  return [
    min !== null && `at least ${formatBound(min)}`,
    above !== null && `above ${formatBound(above)}`,
    max !== null && `at most ${formatBound(max)}`,
    below !== null && `below ${formatBound(below)}`,
  ]
    .filter(Boolean)
    .join(', ');
}

/** The unparsed value of an input: text, or the state of a switch. */
export type Raw = string | boolean;

export type Parsed = { value: unknown; error: null } | { value: undefined; error: string };

const ok = (value: unknown): Parsed => ({ value, error: null });
const invalid = (error: string): Parsed => ({ value: undefined, error });

/** Parses and validates an input's raw value. */
export function parseRaw(field: ConfigField, raw: Raw): Parsed {
  if (typeof raw === 'boolean') return ok(raw);
  if (raw.trim() === '') return field.optional ? ok(null) : invalid('Enter a value.');
  if (field.kind === 'choice') {
    const isOther = field.pattern !== null && new RegExp(field.pattern).test(raw);
    return isOther || field.choices.includes(raw)
      ? ok(raw)
      : invalid(`Choose one of ${field.choices.join(', ')}.`);
  }
  if (field.kind === 'text') return ok(raw);
  const value = parseNumber(raw);
  if (!Number.isFinite(value)) {
    return invalid(
      raw.includes(',')
        ? 'Enter a number with a decimal point, not a comma.'
        : raw.includes(';')
          ? 'Enter a number, or several with a comma and a space between them.'
          : 'Enter a number.',
    );
  }
  if (field.kind === 'integer' && !Number.isInteger(value)) return invalid('Enter a whole number.');
  const { min, above, max, below } = field;
  const outside =
    (min !== null && value < min) ||
    (above !== null && value <= above) ||
    (max !== null && value > max) ||
    (below !== null && value >= below);
  return outside ? invalid(`Must be ${boundsText(field)}.`) : ok(value);
}

/** The raw value of an input that holds `value`. */
export function toRaw(value: unknown): Raw {
  if (typeof value === 'boolean') return value;
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') {
    return Number.isInteger(value) && Math.abs(value) >= 1e4 ? value.toLocaleString('en') : String(value);
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Whether an input holds something other than `base`: the field's default, or the value of a preset. */
export function isChanged(field: ConfigField, raw: Raw, base: unknown = field.default): boolean {
  const { value, error } = parseRaw(field, raw);
  return error !== null || value !== base;
}

/** What an optional field without a value stands for. */
export const emptyText = ({ section }: ConfigField): string => (section === 'stop' ? 'no limit' : 'none');
