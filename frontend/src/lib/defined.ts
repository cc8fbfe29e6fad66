/** A type whose fields may be left out, but are never undefined when they are there. */
export type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** The fields that are set, so that addresses stay short. */
export function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}
