import type { Token } from '@/api/account';

const BROWSERS = [
  [/Edg(e|A|iOS)?\//, 'Edge'],
  [/OPR\//, 'Opera'],
  [/Firefox\/|FxiOS\//, 'Firefox'],
  [/Chrom(e|ium)\/|CriOS\//, 'Chrome'],
  [/Safari\//, 'Safari'],
] as const;

const SYSTEMS = [
  [/Android/, 'Android'],
  [/iPhone|iPad/, 'iOS'],
  [/Windows/, 'Windows'],
  [/Mac OS X|Macintosh/, 'macOS'],
  [/Linux|X11/, 'Linux'],
] as const;

const METHODS = new Map<string | null, string>([
  ['link', ', by link'],
  ['password', ', by password'],
  ['oidc', ', by single sign-on'],
]);

/** A browser's name and system, as far as its `User-Agent` header names them. */
export function browserName(userAgent: string | null): string {
  const find = (known: readonly (readonly [RegExp, string])[]) =>
    known.find(([pattern]) => pattern.test(userAgent ?? ''))?.[1];
  const browser = find(BROWSERS);
  const system = find(SYSTEMS);
  if (browser) return system ? `${browser} on ${system}` : browser;
  return userAgent?.split(/[/ ]/)[0] || 'Unknown browser';
}

/** How a session began, to follow its time. */
export function methodName(method: string | null): string {
  return METHODS.get(method) ?? '';
}

/** What created a token. */
export function creatorName({ created_with, parent_name }: Token): string {
  if (created_with === 'token') return parent_name ? `Token “${parent_name}”` : 'A token';
  if (created_with === 'session') return 'Browser';
  if (created_with === 'run') return 'A run';
  return created_with === 'command line' ? 'Command line' : 'Unknown';
}
