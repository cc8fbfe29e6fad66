import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, render } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Run } from '@/api/runs';
import { CurveViewProvider } from '@/components/chart/CurveViewProvider';
import { LearningCurve } from './LearningCurve';

const { requests } = vi.hoisted(() => {
  const sent: URL[] = [];
  const empty = { data: [], layout: {}, revisions: [1], n_total: 0, n_shown: 0, bands: [], scales: [] };
  globalThis.fetch = (request) => {
    sent.push(new URL((request as Request).url));
    return Promise.resolve(Response.json({ items: [empty] }));
  };
  return { requests: sent };
});

afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

const RUN = { id: 'R', name: 'a run', state: 'running', attempt: 1, wall_time_s: 19, origin: 'callboard' };

it('new checkpoints come with the next points, without points after a while, and a new attempt at once', async () => {
  vi.useFakeTimers();
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  const page = (changes: object) => (
    <QueryClientProvider client={client}>
      <MantineProvider env="test">
        <CurveViewProvider search={{}} onSearch={() => undefined}>
          <LearningCurve run={{ ...RUN, ...changes } as unknown as Run} onNotes={() => undefined} />
        </CurveViewProvider>
      </MantineProvider>
    </QueryClientProvider>
  );
  const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));
  const { rerender } = render(page({}));
  await pass(100);
  expect(requests).toHaveLength(1);

  rerender(page({ wall_time_s: 21 }));
  await pass(1000);
  expect(requests).toHaveLength(1);
  void client.invalidateQueries({ queryKey: ['run', ['R']] });
  await pass(20_000);
  expect(requests).toHaveLength(2);
  expect(requests[1]?.searchParams.get('layout')).toBe('true');

  rerender(page({ wall_time_s: 41 }));
  await pass(20_000);
  expect(requests).toHaveLength(3);
  expect(requests[2]?.searchParams.get('layout')).toBe('true');

  rerender(page({ wall_time_s: 42, attempt: 2 }));
  await pass(100);
  expect(requests).toHaveLength(4);
});
