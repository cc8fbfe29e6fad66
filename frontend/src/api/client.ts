import { QueryClient } from '@tanstack/react-query';
import createClient from 'openapi-fetch';
import { BASE } from '@/lib/base';
import { namesSeeds, withExactSeeds } from './exactSeeds';
import type { paths } from './generated';
import { sessionHeaders, takeFirstAnswer } from './pageSecret';
import { ApiProblem, toProblem } from './problem';
import { isTicketOld, keepSession } from './session';

/** With the session's cookie, but without the secret that the page keeps beside it. */
type SignedOut = { secretLost: boolean };

let signedOut: (reason: SignedOut) => void = () => undefined;

/** Sets what happens when the service answers 401. */
export function onSignedOut(callback: (reason: SignedOut) => void): void {
  signedOut = callback;
}

let requested: (answered: boolean) => void = () => undefined;

/** Sets what receives, after each request, whether the service answered it. */
export function onRequest(callback: (answered: boolean) => void): void {
  requested = callback;
}

async function send(request: Request): Promise<Response> {
  try {
    const response = await (takeFirstAnswer(request) ?? globalThis.fetch(request));
    requested(true);
    return response;
  } catch (error) {
    // A request that the page has aborted says nothing about the network.
    if (!request.signal.aborted) requested(false);
    throw error;
  }
}

export const api = createClient<paths>({
  baseUrl: BASE,
  fetch: (request) => {
    for (const [name, value] of Object.entries(sessionHeaders())) request.headers.set(name, value);
    return send(request);
  },
  // Lists as `state=queued&state=running`.
  querySerializer: { array: { style: 'form', explode: true } },
});

/** Paths whose answers contain what the page has to keep. */
const SESSION_PATHS: readonly string[] = ['/api/v1/auth/me', '/api/v1/auth/login', '/api/v1/auth/password'];

api.use({
  async onResponse({ response, schemaPath }) {
    if (response.status === 401) {
      const body = (await response
        .clone()
        .json()
        .catch(() => null)) as { code?: string } | null;
      signedOut({ secretLost: body?.code === 'page_secret_missing' });
    }
    if (response.ok && SESSION_PATHS.includes(schemaPath))
      keepSession((await response.clone().json()) as Parameters<typeof keepSession>[0]);
    if (!response.ok || response.status === 204 || !namesSeeds(schemaPath)) return undefined;
    if (!response.headers.get('Content-Type')?.includes('json')) return undefined;
    // Without its headers: the length may be that of a compressed body.
    const headers = { 'Content-Type': 'application/json' };
    return new Response(withExactSeeds(await response.text()), { status: response.status, headers });
  },
});

type ApiResponse<T> = { data?: T; error?: unknown; response: Response };

/** Returns the response's data; throws an `ApiProblem` for an error status. */
export async function unwrap<T>(request: Promise<ApiResponse<T>>): Promise<T> {
  const { data, error, response } = await request;
  if (!response.ok) throw toProblem(response.status, error);
  return data as T;
}

/** A key under which the service executes the request of one click once, also when it is repeated. Over plain HTTP
 * there is no `crypto.randomUUID`. */
export const newKey = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-');

/** Gets another ticket for addresses before the present one expires. */
export async function renewTicket(): Promise<void> {
  if (isTicketOld()) await unwrap(api.GET('/api/v1/auth/me'));
}

/** The event stream invalidates stale queries, so nothing is refetched just because time passes. */
export const createQueryClient = (): QueryClient =>
  new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 30_000,
        refetchOnWindowFocus: false,
        // A 4xx or 5xx response would only repeat.
        retry: (failures, error) => !(error instanceof ApiProblem && error.status >= 400) && failures < 2,
      },
      // A mutation paused while offline would run on reconnection, even if the user had cancelled it.
      mutations: { networkMode: 'always' },
    },
  });
