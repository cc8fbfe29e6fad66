import createClient from 'openapi-fetch';
import type { paths } from './generated';
import { toProblem } from './problem';

let signedOut: () => void = () => undefined;

/** What to do when the service no longer knows this browser. */
export function onSignedOut(then: () => void): void {
  signedOut = then;
}

export const api = createClient<paths>({
  // `state=queued&state=running`, as the service reads lists.
  querySerializer: { array: { style: 'form', explode: true } },
});

api.use({
  onResponse({ response }) {
    if (response.status === 401) signedOut();
  },
});

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** The answer's data, or an `ApiProblem` thrown. */
export async function take<T>(request: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await request;
  if (!response.ok) throw toProblem(response.status, error);
  return data as T;
}
