import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Checkpoint } from '@/api/runResources';
import { ExportAgent } from './ExportAgent';

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

it('waits for the archive that a worker writes; only the first request tries again what has failed', async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true, advanceTimeDelta: 500 });
  const click = vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(() => undefined);
  const asked = vi
    .spyOn(globalThis, 'fetch')
    .mockResolvedValueOnce(Response.json({ job: 'J', state: 'queued' }, { status: 202 }))
    .mockResolvedValue(new Response('an archive'));
  render(
    <QueryClientProvider client={new QueryClient()}>
      <MantineProvider env="test">
        <ExportAgent run="R" checkpoint={{ id: 'C', file: 'a.pt' } as Checkpoint} />
      </MantineProvider>
    </QueryClientProvider>,
  );
  fireEvent.click(screen.getByRole('button', { name: 'Export the agent of a.pt' }));
  fireEvent.click(await screen.findByRole('menuitem', { name: /^ONNX/ }));
  await waitFor(() => expect(click).toHaveBeenCalledTimes(1));
  const [link] = click.mock.contexts as HTMLAnchorElement[];
  expect(link?.getAttribute('href')).toMatch(/\/api\/v1\/runs\/R\/agent\?checkpoint=C&format=onnx$/);
  expect(asked.mock.calls.map(([url]) => (url as string).endsWith('&again=true'))).toEqual([true, false]);
});
