import { QueryClient } from '@tanstack/react-query';
import { cleanup, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { keys } from '@/api/keys';
import { openPage } from '@/routes/-openPage';
import { Route } from './scores';

afterEach(cleanup);

it.each([
  ['', '1', ['1', '3', '5', '10']],
  ['?seeds=7', '7', ['1', '3', '5', '7', '10']],
  ['?min_seeds=20', '20', ['1', '3', '5', '10', '20']],
])('ScoresPage at "%s" shows the number of seeds of its address', async (search, chosen, offered) => {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  const request = chosen === '1' ? {} : { min_seeds: Number(chosen) };
  const scores = { protocol: 'noop_starts', protocols: [], columns: [], rows: [], rule: 'Best score' };
  client.setQueryData(keys.scores(request), scores);
  client.setQueryData(keys.environments(), []);
  client.setQueryData(keys.hosts(), { items: [] });
  await openPage(Route, '/scores', `/scores${search}`, client);
  const select = await screen.findByRole<HTMLSelectElement>('combobox', { name: 'Seeds' });
  expect(select.value).toBe(chosen);
  expect([...select.options].map(({ value }) => value)).toEqual(offered);
});
