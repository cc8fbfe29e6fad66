import { QueryClient } from '@tanstack/react-query';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from './client';
import { hostSilenceQuery, hostsQuery } from './hosts';

afterEach(() => vi.restoreAllMocks());

it.each(['page', 'banner'])(
  'the banner and a page with hosts ask for them once, the %s first',
  async (first) => {
    const asked = vi
      .spyOn(api, 'GET')
      .mockResolvedValue({ data: { items: [] }, response: new Response() } as never);
    const client = new QueryClient({ defaultOptions: { queries: { staleTime: 30_000 } } });
    const queries = [() => client.query(hostsQuery), () => client.query(hostSilenceQuery)];
    if (first === 'banner') queries.reverse();
    await Promise.all(queries.map((query) => query()));
    expect(asked).toHaveBeenCalledTimes(1);
  },
);
