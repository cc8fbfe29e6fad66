/**
 * A seed may be any whole number below 2^63, but `JSON.parse` rounds above 2^53: two seeds would look equal.
 * Quotes in a JSON string are escaped, so the pattern matches fields only.
 */
const LARGE_SEED = /("seed":\s*)(\d{16,19})(?=\s*[,}])/g;

/** JSON whose large seeds are strings: they are only shown, never computed with. */
export const withExactSeeds = (json: string): string =>
  json.replace(LARGE_SEED, (field, name: string, digits: string) =>
    Number.isSafeInteger(Number(digits)) ? field : `${name}"${digits}"`,
  );

/** Whether the responses of an address of the API name seeds of runs. */
export const namesSeeds = (path: string): boolean => /^\/api\/v1\/(runs|comparisons)\b/.test(path);
