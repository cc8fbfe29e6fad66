/**
 * The page's part of a session, and the page's first request, which asks for the rest of it.
 *
 * A browser sends a cookie to every port of its host, and another user of the machine may listen there. So the
 * service also asks for a secret that the page keeps in the local storage of its origin, as a header.
 */
import { BASE, served } from '@/lib/base';

/** Services below different paths of a host share its storage. */
const KEY = `callboard-page-secret${BASE}`;
const FRAGMENT = /^#page_secret=([\w-]{1,200})$/;
const PAGE_SECRET_HEADER = 'X-Page-Secret';
const SESSION = served('/api/v1/auth/me');

/** Without a local storage the secret lasts as long as the page. */
let unstored: string | null = null;
let firstAnswer: Promise<Response> | undefined;

export function keepSecret(secret: string): void {
  unstored = secret;
  try {
    localStorage.setItem(KEY, secret);
  } catch {
    // Storage is blocked or full.
  }
}

function readSecret(): string | null {
  try {
    return localStorage.getItem(KEY) ?? unstored;
  } catch {
    return unstored;
  }
}

export function forgetSecret(): void {
  unstored = null;
  try {
    localStorage.removeItem(KEY);
  } catch {
    // It was not stored.
  }
}

/** Takes the secret that a login by link or provider has put into the address, and removes it there. */
export function takeSecret(): void {
  const secret = FRAGMENT.exec(location.hash)?.[1];
  if (secret === undefined) return;
  keepSecret(secret);
  history.replaceState(history.state, '', location.pathname + location.search);
}

/** The header of every request to the API. */
export function sessionHeaders(): Record<string, string> {
  const secret = readSecret();
  return secret === null ? {} : { [PAGE_SECRET_HEADER]: secret };
}

/** Requests the session before the scripts that read the answer are there. */
export function requestSession(): void {
  firstAnswer = fetch(new Request(SESSION, { headers: sessionHeaders() }));
  // Who takes the answer learns of its failure.
  firstAnswer.catch(() => undefined);
}

/** The answer that is on its way to a request of the session; only the first one gets it. */
export function takeFirstAnswer({ url }: Request): Promise<Response> | undefined {
  if (firstAnswer === undefined || new URL(url).pathname !== SESSION) return undefined;
  const answer = firstAnswer;
  firstAnswer = undefined;
  return answer;
}
