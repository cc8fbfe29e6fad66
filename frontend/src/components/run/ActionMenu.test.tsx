import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import type { Run } from '@/api/runs';
import { ActionMenu } from './ActionMenu';

// The client keeps the function that it finds when it is loaded.
vi.hoisted(() => {
  globalThis.fetch = () => new Promise(() => undefined);
});

afterEach(cleanup);

const RUN = {
  id: '00000000000000000000000001',
  name: 'one',
  origin: 'callboard',
  algorithm: 'paac',
  environment: 'CartPole-v1',
  state: 'finished',
  agent_steps: 1000,
  spec: { stop: { agent_steps: 1000 } },
} as unknown as Run;

async function show(role: string, run: Run = RUN): Promise<void> {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(keys.me(), { role, missing_extras: [] });
  const rootRoute = createRootRoute({
    component: () => (
      <QueryClientProvider client={client}>
        <MantineProvider env="test">
          <ActionMenu run={run} />
        </MantineProvider>
      </QueryClientProvider>
    ),
  });
  const router = createRouter({ routeTree: rootRoute, history: createMemoryHistory() });
  await router.load();
  render(<RouterProvider router={router as never} />);
}

const button = (): HTMLElement => screen.getByRole('button', { name: 'Actions for one' });
const item = (name: string): Promise<HTMLElement> => screen.findByRole('menuitem', { name });

describe('ActionMenu', () => {
  it('offers a viewer no action and states why', async () => {
    await show('viewer');
    fireEvent.click(button());
    expect(
      (await item('Delete')).getAttribute('aria-disabled') ?? (await item('Delete')).getAttribute('disabled'),
    ).not.toBeNull();
    expect(screen.getByText('Requires the role operator; your role is viewer.')).toBeDefined();
  });

  it('asks before it deletes, and returns the focus when that is cancelled', async () => {
    await show('operator');
    fireEvent.click(button());
    fireEvent.click(await item('Delete'));
    const dialog = await screen.findByRole('dialog');
    fireEvent.click(await screen.findByRole('button', { name: 'Cancel' }));
    await waitFor(() => expect(dialog.isConnected).toBe(false));
    expect(document.activeElement).toBe(button());
  });

  it.each([
    { state: 'finished', agent_steps: 1000, proposed: '2,000', completes: false },
    { state: 'stopped', agent_steps: 1000, proposed: '1,000', completes: true },
    { state: 'failed', agent_steps: 1000, proposed: '1,000', completes: true },
    { state: 'stopped', agent_steps: 400, proposed: '1,000', completes: false },
  ])('proposes to resume a $state run at $agent_steps of 1000 agent steps until $proposed', async (row) => {
    await show('operator', { ...RUN, state: row.state, agent_steps: row.agent_steps } as unknown as Run);
    fireEvent.click(button());
    fireEvent.click(await item('Resume'));
    const bound = await screen.findByRole<HTMLInputElement>('textbox', { name: 'Train until' });
    expect(bound.value).toBe(row.proposed);
    expect(screen.queryByText(/it completes what is missing/) !== null).toBe(row.completes);
    fireEvent.change(bound, { target: { value: '5000' } });
    expect(screen.queryByText(/it completes what is missing/)).toBeNull();
  });

  it.each([
    { stop: { wall_time_s: 60 }, completes: true },
    { stop: { wall_time_s: 61 }, completes: false },
    { stop: { score: 20 }, completes: true },
    { stop: { score: 21 }, completes: false },
  ])('states what a resume of a stopped run with the limits $stop does', async ({ stop, completes }) => {
    const run = { ...RUN, state: 'stopped', wall_time_s: 60, score: 20, spec: { stop } } as unknown as Run;
    await show('operator', run);
    fireEvent.click(button());
    fireEvent.click(await item('Resume'));
    await screen.findByRole('button', { name: 'Resume' });
    expect(screen.queryByText(/it completes what is missing/) !== null).toBe(completes);
  });
});
