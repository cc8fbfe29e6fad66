import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider, useQuery } from '@tanstack/react-query';
import {
  createMemoryHistory,
  createRootRoute,
  createRouter,
  RouterContextProvider,
} from '@tanstack/react-router';
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { playSessionQuery } from '@/api/play';
import { PlayView } from './PlayView';

const service = vi.hoisted(() => {
  const state = { ended: false, fails: false, requests: 0 };
  globalThis.fetch = (input) => {
    if ((input as Request).method === 'DELETE') {
      state.ended = true;
      return Promise.resolve(new Response(null, { status: 204 }));
    }
    state.requests += 1;
    if (state.fails) return Promise.reject(new TypeError('Failed to fetch'));
    const session = { id: 'S', environment: 'Catch-v0', player: 'ada', source: null, agent: null };
    const how = state.ended ? { state: 'ended', end_reason: 'over' } : { state: 'running', end_reason: null };
    return Promise.resolve(Response.json({ ...session, ...how, action_names: ['LEFT', 'RIGHT'] }));
  };
  return state;
});

/** A stream of which the test sends the frames. */
class FakeSocket {
  static readonly OPEN = 1;
  static opened: FakeSocket[] = [];
  static sent: string[] = [];
  readyState = FakeSocket.OPEN;
  onmessage: ((event: { data: ArrayBuffer }) => void) | undefined;
  send = (message: string): void => void FakeSocket.sent.push(message);
  close = (): void => undefined;
  addEventListener = (): void => undefined;

  constructor() {
    FakeSocket.opened.push(this);
  }
}

function sendFrame(): void {
  const text = new TextEncoder().encode(JSON.stringify({ score: 0, frames: 1, speed: 1, game: 1 }));
  const data = new Uint8Array([text.length & 255, text.length >> 8, ...text]).buffer;
  FakeSocket.opened.at(-1)?.onmessage?.({ data });
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('WebSocket', FakeSocket);
  Object.assign(navigator, { getGamepads: () => [] });
  Object.assign(service, { ended: false, fails: false, requests: 0 });
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

function Page() {
  const { data, error } = useQuery(playSessionQuery('S'));
  return (
    <>
      {error && <p>Unreachable</p>}
      {data && <PlayView session={data} mine />}
    </>
  );
}

async function show(): Promise<void> {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  const router = createRouter({ routeTree: createRootRoute(), history: createMemoryHistory() });
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <RouterContextProvider router={router as never}>
          <Page />
        </RouterContextProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
  await pass(100);
}

it('PlayView shows that its button has ended the session, although no frame arrives', async () => {
  await show();
  act(sendFrame);
  fireEvent.click(screen.getByRole('button', { name: 'End session' }));
  await pass(100);
  expect(screen.getByText(/^The session has ended: over/)).toBeTruthy();
});

it('PlayView polls a session without frames until it has ended', async () => {
  await show();
  service.ended = true;
  await pass(10_000);
  expect(screen.getByText(/^The session has ended: over/)).toBeTruthy();
  const { requests } = service;
  await pass(60_000);
  expect(service.requests).toBe(requests);
});

it('PlayView refetches the session once frames arrive, so that no error stays', async () => {
  await show();
  service.fails = true;
  await pass(10_000);
  expect(screen.getByText('Unreachable')).toBeTruthy();
  service.fails = false;
  act(sendFrame);
  await pass(100);
  expect(screen.queryByText('Unreachable')).toBeNull();
});

it('PlayView obeys the letters that it names, wherever they are on the keyboard', async () => {
  await show();
  act(sendFrame);
  await pass(100);
  FakeSocket.sent.length = 0;
  fireEvent.keyDown(document.body, { key: 'k', code: 'KeyN' }); // of Colemak
  fireEvent.keyDown(document.body, { key: 'p', code: 'KeyR' });
  fireEvent.keyDown(document.body, { key: 'т', code: 'KeyN' }); // of a Cyrillic layout
  const types = FakeSocket.sent.map((message) => (JSON.parse(message) as { type: string }).type);
  expect(types.filter((type) => type !== 'action')).toEqual(['pause', 'new_game']);
});
