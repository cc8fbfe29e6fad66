import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, expect, it, vi } from 'vitest';
import { ExportMenu } from './run/ExportMenu';

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

const show = (children: ReactNode) =>
  render(
    <QueryClientProvider client={new QueryClient()}>
      <MantineProvider env="test">{children}</MantineProvider>
    </QueryClientProvider>,
  );

const answer = (response: Response) => vi.spyOn(globalThis, 'fetch').mockResolvedValue(response);
const clicks = () => vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(() => undefined);

async function exportCsv() {
  fireEvent.click(screen.getByRole('button', { name: 'Export' }));
  fireEvent.click(await screen.findByRole('menuitem', { name: 'CSV' }));
}

it('ExportMenu shows why an export was refused', async () => {
  const click = clicks();
  const detail = 'You have 4 exports already: wait until one has ended.';
  answer(Response.json({ title: 'Too Many Requests', detail }, { status: 429 }));
  show(<ExportMenu target={{ ids: ['R'] }} />);
  await exportCsv();
  const dialog = await screen.findByRole('dialog', { name: 'Export failed' });
  expect(dialog.textContent).toContain(detail);
  expect(click).not.toHaveBeenCalled();
});

it('ExportMenu leaves the file to the browser, once its status is known', async () => {
  const click = clicks();
  const asked = answer(new Response('a file of any size'));
  show(<ExportMenu target={{ ids: ['R'] }} />);
  await exportCsv();
  await waitFor(() => expect(click).toHaveBeenCalledTimes(1));
  const [link] = click.mock.contexts as HTMLAnchorElement[];
  expect(link?.getAttribute('href')).toMatch(/\/api\/v1\/runs\/R\/export\?format=csv$/);
  expect(asked).toHaveBeenCalledTimes(1);
  expect(asked.mock.calls[0]?.[1]?.signal?.aborted).toBe(true);
  expect(screen.queryByRole('dialog')).toBeNull();
});
