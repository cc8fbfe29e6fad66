import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { createQueryClient } from '@/api/client';
import StoragePage from './StoragePage';

const requests = vi.hoisted(() => {
  const sent: string[] = [];
  // The client keeps the function that it finds when it is loaded.
  globalThis.fetch = (input) => {
    sent.push(new URL((input as Request).url).pathname);
    return Promise.resolve(Response.json({ title: 'Internal Server Error' }, { status: 500 }));
  };
  return sent;
});

afterEach(cleanup);

it('StoragePage says what it cannot read, and asks no more than twice by itself', async () => {
  render(
    <QueryClientProvider client={createQueryClient()}>
      <MantineProvider env="test">
        <StoragePage />
      </MantineProvider>
    </QueryClientProvider>,
  );
  await waitFor(() => expect(screen.getAllByRole('alert')).toHaveLength(5));
  expect(screen.queryByRole('status', { name: /^Loading/ })).toBeNull();
  const counts = Map.groupBy(requests, (path) => path);
  expect(Math.max(...[...counts.values()].map(({ length }) => length))).toBeLessThanOrEqual(2);
});
