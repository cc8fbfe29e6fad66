import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '@/api/client';
import { keys } from '@/api/keys';
import { DiskBanner } from './DiskBanner';

afterEach(cleanup);

const HOST = { id: 'lab', stopped_at: null, load: { disk_problem: null as string | null } };

function show(readiness: object, hosts?: object[]) {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity, retry: false } } });
  client.setQueryData(keys.readiness(), readiness);
  if (hosts) client.setQueryData(keys.hostSilence(), { items: hosts });
  const router = createRouter({
    routeTree: createRootRoute({
      component: () => (
        <>
          <h1>Page</h1>
          <DiskBanner />
        </>
      ),
    }),
    history: createMemoryHistory(),
  });
  render(
    <QueryClientProvider client={client}>
      <MantineProvider>
        <RouterProvider router={router as never} />
      </MantineProvider>
    </QueryClientProvider>,
  );
}

it('DiskBanner names the disk of the server and that of a host, and what to do', async () => {
  const problem = 'disk of CALLBOARD_HOME: No space left on device; free some space, or make it writable';
  const full = { ...HOST, load: { disk_problem: '3 MiB free' } };
  show({ ready: false, disk: false, host_disks: false, problems: [problem] }, [HOST, full]);
  const banner = await screen.findByRole('alert');
  expect(banner.textContent).toContain(problem);
  expect(banner.textContent).toContain('The disk of host lab is full or failing. 3 MiB free.');
  expect(screen.getByRole('link', { name: 'Show storage usage' })).toBeTruthy();
});

it('DiskBanner shows nothing while there is room, and nothing of a host that was stopped', async () => {
  const stopped = { ...HOST, stopped_at: '2026-01-01T00:00:00Z', load: { disk_problem: '3 MiB free' } };
  show({ ready: false, disk: true, host_disks: false, problems: ['Redis: it does not respond'] }, [
    HOST,
    stopped,
  ]);
  await screen.findByRole('heading', { name: 'Page' });
  expect(screen.queryByRole('alert')).toBeNull();
});

it('DiskBanner asks for the hosts only where the disk of one of them is full', async () => {
  const asked = vi
    .spyOn(api, 'GET')
    .mockResolvedValue({ data: { items: [] }, response: new Response() } as never);
  show({ ready: true, disk: true, host_disks: true, problems: [] });
  await screen.findByRole('heading', { name: 'Page' });
  expect(asked).not.toHaveBeenCalled();
  cleanup();
  show({ ready: true, disk: true, host_disks: false, problems: [] });
  await vi.waitFor(() => expect(asked).toHaveBeenCalledOnce());
});
