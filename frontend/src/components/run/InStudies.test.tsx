import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider, useQuery } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { studiesOfRunQuery } from '@/api/studies';
import { InStudies } from './InStudies';

const served = vi.hoisted(() => {
  const answers: { studies: unknown } = { studies: null };
  globalThis.fetch = () =>
    Promise.resolve(
      answers.studies === null
        ? Response.json({ detail: 'away' }, { status: 503 })
        : Response.json({ items: answers.studies, next_cursor: null }),
    );
  return answers;
});

afterEach(cleanup);

const LOSS = 'It no longer counts there.';

/** What the component knows, which is told at the same time. */
const Status = () => <p>{useQuery(studiesOfRunQuery('R')).status}</p>;

function show(): QueryClient {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={client}>
      <MantineProvider env="test">
        <InStudies runId="R">{LOSS}</InStudies>
        <Status />
      </MantineProvider>
    </QueryClientProvider>,
  );
  return client;
}

it('names the studies, also after they could not be loaded again', async () => {
  served.studies = [{ name: 'learning rates' }];
  const client = show();
  expect(await screen.findByText(`Part of studies: learning rates. ${LOSS}`)).toBeTruthy();
  served.studies = null;
  void client.refetchQueries();
  await screen.findByText('error');
  expect(screen.getByText(`Part of studies: learning rates. ${LOSS}`)).toBeTruthy();
});

it('warns if the studies could not be loaded, and not of a run without any', async () => {
  served.studies = null;
  show();
  expect(await screen.findByText(/if any, could not be loaded\. It no longer counts there\./)).toBeTruthy();
  cleanup();
  served.studies = [];
  show();
  await screen.findByText('success');
  expect(screen.queryByText(new RegExp(LOSS))).toBeNull();
});
