import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { checkpointsQuery, protocolsQuery } from '@/api/runResources';
import { EvaluateDialog } from './EvaluateDialog';

vi.mock('@/lib/runBounds', async (actual) => ({
  ...(await actual<object>()),
  MIN_EVALUATION_EPISODES: 3,
  MAX_EVALUATION_EPISODES: 40,
}));

afterEach(cleanup);

it('accepts a number of episodes within the bounds of the service', () => {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(checkpointsQuery('R').queryKey, {
    pages: [{ items: [], next_cursor: null }],
    pageParams: [null],
  });
  client.setQueryData(protocolsQuery('R').queryKey, { items: [], default: 'plain' });
  render(
    <QueryClientProvider client={client}>
      <MantineProvider>
        <EvaluateDialog run={{ id: 'R', name: 'r' }} onClose={vi.fn()} />
      </MantineProvider>
    </QueryClientProvider>,
  );
  const episodes = screen.getByLabelText('Episodes');
  const error = 'A whole number from 3 to 40';
  for (const value of ['2', '41']) {
    fireEvent.change(episodes, { target: { value } });
    expect(screen.getByRole('alert').textContent).toBe(error);
  }
  for (const value of ['3', '40']) {
    fireEvent.change(episodes, { target: { value } });
    expect(screen.queryByText(error)).toBeNull();
  }
});
