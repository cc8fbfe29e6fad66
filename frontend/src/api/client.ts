import { QueryClient } from '@tanstack/react-query';
import createClient from 'openapi-fetch';
import { namesSeeds, withExactSeeds } from './exactSeeds';
import type { paths } from './generated';
import { ApiProblem, toProblem } from './problem';

let signedOut: () => void = () => undefined;

/** Sets what happens when the service answers 401. */
export function onSignedOut(callback: () => void): void {
  signedOut = callback;
}

export const api = createClient<paths>({
  // Lists as `state=queued&state=running`.
  querySerializer: { array: { style: 'form', explode: true } },
});

api.use({
  async onResponse({ response, schemaPath }) {
    if (response.status === 401) signedOut();
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
    },
  });
