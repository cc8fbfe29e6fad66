import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { runQuery, type RunDetail } from '@/api/runs';
import { RunBadge } from './StateBadge';

afterEach(cleanup);

it.each([
  ['external', 'running', 20, 'running'],
  ['external', 'running', 40, 'silent'],
  ['external', 'lost', 40, 'lost'],
  ['callboard', 'running', null, 'running'],
])('an %s run that is %s and has sent nothing for %s s is %s', (origin, state, silent_s, word) => {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  const run = { id: 'R', origin, state, silent_s, state_reason: '' } as RunDetail;
  client.setQueryData(runQuery('R').queryKey, run);
  render(
    <QueryClientProvider client={client}>
      <MantineProvider env="test">
        <RunBadge run={run} />
      </MantineProvider>
    </QueryClientProvider>,
  );
  expect(screen.getByText(word)).toBeDefined();
});
