import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { forgetSession, keepSession } from './session';

const requests = vi.hoisted(() => {
  const paths: string[] = [];
  globalThis.fetch = (input) => {
    paths.push(new URL((input as Request).url).pathname);
    return Promise.resolve(Response.json({ ticket: 'new' }));
  };
  return paths;
});

const { openSocket } = await import('./socket');

class FakeSocket extends EventTarget {
  constructor(readonly url: string) {
    super();
  }
}

const closeEvent = (code: number): Event => Object.assign(new Event('close'), { code });

beforeEach(() => {
  vi.stubGlobal('WebSocket', FakeSocket);
  requests.length = 0;
  keepSession({ ticket: 'ended' });
});
afterEach(() => {
  vi.unstubAllGlobals();
  forgetSession();
});

it.each([
  { what: 'closed before it opened', opens: false, code: 1006, ticket: 'new' },
  { what: 'was refused', opens: true, code: 1008, ticket: 'new' },
  { what: 'lost its connection', opens: true, code: 1006, ticket: 'ended' },
])('after a socket that $what the next one has the ticket “$ticket”', async ({ opens, code, ticket }) => {
  const first = await openSocket('/api/v1/runs/R/live');
  expect(first.url).toMatch(/^ws:.*\/api\/v1\/runs\/R\/live\?ticket=ended$/);
  if (opens) first.dispatchEvent(new Event('open'));
  first.dispatchEvent(closeEvent(code));
  const second = await openSocket('/api/v1/runs/R/live');
  expect(second.url).toMatch(new RegExp(`ticket=${ticket}$`));
  expect(requests).toEqual(ticket === 'new' ? ['/api/v1/auth/me'] : []);
});
