import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { keys } from '@/api/keys';
import type { Run } from '@/api/runs';
import { ConfigTab } from './ConfigTab';

afterEach(cleanup);

const RUN = {
  id: 'R',
  origin: 'callboard',
  algorithm: 'paac',
  environment: 'CartPole-v1',
  seed: 1,
  tags: [],
  departures: {},
  spec: { config: { learning_rate: 0.01 }, environment_config: {}, stop: {}, device: 'auto' },
} as unknown as Run;

function show(state: Run['state']) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(keys.me(), { role: 'operator' });
  client.setQueryData(keys.runResource('R', 'settings'), []);
  client.setQueryData(keys.algorithms(), [
    {
      id: 'paac',
      config_schema: {
        properties: { learning_rate: { type: 'number', title: 'Learning rate', default: 0.01, live: true } },
      },
      defaults: {},
    },
  ]);
  client.setQueryData(keys.environments(), [
    { id: 'CartPole-v1', observation: 'vector', actions: 'discrete', config_schema: {}, defaults: {} },
  ]);
  render(
    <QueryClientProvider client={client}>
      <MantineProvider>
        <ConfigTab run={{ ...RUN, state }} onlyChanged={false} onOnlyChanged={() => undefined} />
      </MantineProvider>
    </QueryClientProvider>,
  );
}

it.each([
  ['queued', true],
  ['running', true],
  ['finished', false],
  ['stopped', false],
  ['failed', false],
] as const)('offers a change of the config of a %s run: %s', (state, offered) => {
  show(state);
  expect(screen.getByText('Learning rate')).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Change config…' }) !== null).toBe(offered);
});
