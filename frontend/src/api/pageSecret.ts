/**
 * The page's part of a session, and the page's first request, which asks for the rest of it.
 *
 * A browser sends a cookie to every port of its host, and another user of the machine may listen there. So the
 * service also asks for a secret that the page keeps in the local storage of its origin, as a header.
 */
import { BASE, served } from '@/lib/base';

/** Services below different paths of a host share its storage. */
const KEY = `callboard-page-secret${BASE}`;
const NONCE_KEY = 'callboard-login-nonce';
const FRAGMENT = /^#page_secret=([\w-]{1,200})&nonce=([\w-]{1,64})$/;
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

/**
 * The nonce of a login that begins in this tab: it comes back in the address, beside the page's secret. Null where
 * the browser stores nothing.
 */
export function loginNonce(): string | null {
  try {
    const nonce = sessionStorage.getItem(NONCE_KEY) ?? crypto.getRandomValues(new Uint32Array(4)).join('-');
    sessionStorage.setItem(NONCE_KEY, nonce);
    return nonce;
  } catch {
    return null;
  }
}

function takeNonce(): string | null {
  try {
    const nonce = sessionStorage.getItem(NONCE_KEY);
    sessionStorage.removeItem(NONCE_KEY);
    return nonce;
  } catch {
    return null;
  }
}

/**
 * Takes the secret that a login by link or provider has put into the address, and removes it there. A secret without
 * the nonce of this tab is not believed: any page may link to one, as of another user's session.
 */
export function takeSecret(): void {
  if (!location.hash.startsWith('#page_secret=')) return;
  const [, secret, nonce] = FRAGMENT.exec(location.hash) ?? [];
  history.replaceState(history.state, '', location.pathname + location.search);
  if (secret !== undefined && nonce === takeNonce()) keepSecret(secret);
}

/** Follows a login link at this address, but stays with a session that is valid; false at any other address. */
export function followLoginLink(): boolean {
  const query = new URLSearchParams(location.search);
  const nonce = query.has('nonce') || !query.has('token') ? null : loginNonce();
  if (location.pathname !== served('/login') || nonce === null) return false;
  query.set('nonce', nonce);
  const follow = () => location.replace(`${location.pathname}?${query.toString()}`);
  if (readSecret() === null) follow();
  else
    fetchSession()
      .then(({ ok }) => (ok ? location.replace(served('/')) : follow()))
      .catch(follow);
  return true;
}

/** The header of every request to the API. */
export function sessionHeaders(): Record<string, string> {
  const secret = readSecret();
  return secret === null ? {} : { [PAGE_SECRET_HEADER]: secret };
}

const fetchSession = () => fetch(new Request(SESSION, { headers: sessionHeaders() }));

/** Requests the session before the scripts that read the answer are there. */
export function requestSession(): void {
  firstAnswer = fetchSession();
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
