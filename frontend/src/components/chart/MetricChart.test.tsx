import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { CurveViewProvider } from './CurveViewProvider';
import { MetricChart } from './MetricChart';

// The client keeps the function that it finds when it is loaded.
vi.hoisted(() => {
  globalThis.fetch = () => new Promise(() => undefined);
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it('a chart is mounted, and asks for data, only in or near the viewport', () => {
  let scroll: (isIntersecting: boolean) => void = () => undefined;
  const margins: unknown[] = [];
  vi.stubGlobal(
    'IntersectionObserver',
    class {
      constructor(callback: (entries: object[]) => void, options?: { rootMargin?: string }) {
        margins.push(options?.rootMargin);
        scroll = (isIntersecting) => act(() => callback([{ isIntersecting }]));
      }
      observe = (): void => undefined;
      disconnect = (): void => undefined;
    },
  );
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const asked = () => client.getQueryCache().getAll().length;
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <CurveViewProvider search={{}} onSearch={() => undefined}>
          <MetricChart
            runs={['R']}
            title="loss/value"
            label="loss/value of a run"
            fileName="f"
            id="loss/value"
            metrics={['loss/value']}
            figure={{ metric: 'loss/value' }}
          />
        </CurveViewProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
  expect(margins).toEqual(['300px']);
  expect(screen.queryByText('loss/value')).toBeNull();
  expect(asked()).toBe(0);
  scroll(true);
  expect(screen.getByText('loss/value')).toBeTruthy();
  expect(asked()).toBeGreaterThan(0);
  expect(screen.getByRole('status', { name: 'Loading loss/value…' })).toBeTruthy();
  scroll(false);
  expect(screen.queryByText('loss/value')).toBeNull();
});
