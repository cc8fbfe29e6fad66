import { QueryClient } from '@tanstack/react-query';
import { expect, it, vi } from 'vitest';
import type { LogLine } from '@/api/runResources';
import { appendLines, loadOlder, logQuery, MAX_LINES, type Lines } from './lines';

/** The number of lines of the log that the service has. */
const service = vi.hoisted(() => {
  const state = { count: 0, requests: 0, newLines: Promise.resolve() };
  globalThis.fetch = async (input) => {
    state.requests += 1;
    const { searchParams } = new URL((input as Request).url);
    const limit = Number(searchParams.get('limit'));
    const end = Number(searchParams.get('before') ?? state.count);
    const first = searchParams.has('after') ? Number(searchParams.get('after')) + 1 : end - limit;
    if (searchParams.has('after')) await state.newLines;
    const items = Array.from({ length: state.count }, (_, id) => ({ id })).slice(Math.max(0, first), end);
    return Response.json({ items: items.slice(0, limit) });
  };
  return state;
});

const lines = (from: number, count: number): LogLine[] =>
  Array.from({ length: count }, (_, index) => ({ id: from + index }) as LogLine);
const previous = (count: number): Lines => ({ items: lines(0, count), older: false });

it('appendLines appends new lines', () => {
  expect(appendLines(previous(2), lines(2, 2)).items.map(({ id }) => id)).toEqual([0, 1, 2, 3]);
});

it('appendLines returns the same object when there are no new lines', () => {
  const before = previous(2);
  expect(appendLines(before, [])).toBe(before);
});

it('appendLines drops the oldest lines beyond the maximum and reports older ones', () => {
  const after = appendLines(previous(MAX_LINES), lines(MAX_LINES, 10));
  expect(after.items).toHaveLength(MAX_LINES);
  expect(after.items[0]?.id).toBe(10);
  expect(after.older).toBe(true);
});

it('logQuery fetches all new lines, however many pages they fill', async () => {
  const client = new QueryClient();
  service.count = 20;
  await client.query({ ...logQuery(client, 'R', ''), staleTime: 0 });
  service.count = 1200;
  const { items } = await client.query({ ...logQuery(client, 'R', ''), staleTime: 0 });
  expect(items.map(({ id }) => id)).toEqual(lines(0, 1200).map(({ id }) => id));
});

it('logQuery begins anew at the end of the log when more lines are new than are kept', async () => {
  const client = new QueryClient();
  service.count = 20;
  await client.query({ ...logQuery(client, 'S', ''), staleTime: 0 });
  service.count = 3 * MAX_LINES;
  service.requests = 0;
  const { items, older } = await client.query({ ...logQuery(client, 'S', ''), staleTime: 0 });
  expect(items.at(-1)?.id).toBe(3 * MAX_LINES - 1);
  expect(items.every(({ id }, at) => at === 0 || id === (items[at - 1]?.id ?? 0) + 1)).toBe(true);
  expect(older).toBe(true);
  expect(service.requests).toBe(MAX_LINES / 500 + 1);
});

it('older lines that are loaded while new ones are fetched stay', async () => {
  const client = new QueryClient();
  service.count = 600;
  await client.query({ ...logQuery(client, 'T', ''), staleTime: 0 });
  service.count = 620;
  let arrive = (): void => undefined;
  service.newLines = new Promise((resolve) => (arrive = resolve));
  const refetched = client.query({ ...logQuery(client, 'T', ''), staleTime: 0 });
  await loadOlder(client, 'T', '');
  arrive();
  expect((await refetched).items.map(({ id }) => id)).toEqual(lines(0, 620).map(({ id }) => id));
});
