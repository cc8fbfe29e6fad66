/** What the search parameters of all pages are checked with. Each page declares its own parameters beside its component. */
import { joinNames, splitNames } from './names';

/** A type whose fields are optional but never undefined when present. */
export type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** The fields that have a value, which keeps URLs short. */
export function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}

/** The parameters of an address, unchecked. */
export type Unchecked = Record<string, unknown>;

/**
 * Marks a page's parameters, each of which is checked already, as such. Fields without a value stay present as
 * undefined, although the type says that they are missing: for a missing field the router would keep the raw
 * parameter of the URL.
 */
export const checked = <T extends object>(fields: T): Defined<T> => fields;

/**
 * Reads a page's parameters also by the names that they have in REST, such as `{ run: 'runs' }`: people write addresses
 * with the names that they know from requests. The page's own name comes first, and alone stands in the address
 * afterwards.
 */
export const alsoByRestNames =
  <T extends object>(names: Readonly<Record<string, string>>, read: (search: Unchecked) => T) =>
  (search: Unchecked): T => {
    const renamed = Object.fromEntries(Object.entries(names).map(([rest, own]) => [own, search[rest]]));
    const dropped = Object.fromEntries(Object.keys(names).map((rest) => [rest, undefined]));
    return { ...read({ ...renamed, ...defined(search) }), ...dropped };
  };

export const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== ''
    ? value
    : typeof value === 'number' || typeof value === 'boolean'
      ? String(value)
      : undefined;

export function oneOf<T extends string>(value: unknown, allowed: readonly T[]): T | undefined {
  return allowed.find((choice) => choice === value);
}

export const flag = (value: unknown): true | undefined => (value === true ? true : undefined);

/** The values of a comma-separated list, or of a repeated parameter. */
export const list = (value: unknown): string | undefined =>
  Array.isArray(value) ? joinNames(value.flatMap((item) => text(item) ?? [])) : text(value);

const MAX_NAME_LENGTH = 220;

export const nameOf = (value: unknown): string | undefined => {
  const name = text(value);
  return name !== undefined && name.length <= MAX_NAME_LENGTH ? name : undefined;
};

/** A list of names, such as of metrics, charts or columns. */
export const nameList = (value: unknown): string | undefined =>
  joinNames(
    [...new Set(splitNames(list(value) ?? ''))]
      .filter((name) => name !== '' && name.length <= MAX_NAME_LENGTH)
      .slice(0, 100),
  ) || undefined;

const ID = /^[0-9A-HJKMNP-TV-Z]{26}$/;

/** A valid id. */
export const idOf = (value: unknown): string | undefined => {
  const id = text(value);
  return id !== undefined && ID.test(id) ? id : undefined;
};

/** The valid run ids of a list. */
export const runIds = (value: unknown): string | undefined =>
  list(value)
    ?.split(',')
    .filter((id) => ID.test(id))
    .join(',') || undefined;

/** The id of an evaluation protocol, which may name a start set and its version. */
export const protocol = (value: unknown): string | undefined => {
  const id = text(value);
  return id && /^\w{1,50}(:[a-z0-9-]{1,24}(@\d{1,5})?)?$/.test(id) ? id : undefined;
};
