import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import type { Run } from '@/api/runs';
import { ActionMenu } from './ActionMenu';

const sent = vi.hoisted(() => {
  const bodies: unknown[] = [];
  globalThis.fetch = async (input) => {
    const request = input as Request;
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/api/v1/studies' && searchParams.get('run') === '00000000000000000000000001')
      return Response.json({ items: [{ name: 'learning rates' }], next_cursor: null });
    if (request.method !== 'POST') return new Promise(() => undefined);
    bodies.push(await request.clone().json());
    return Response.json({});
  };
  return bodies;
});

afterEach(() => {
  cleanup();
  sent.length = 0;
});

const RUN = {
  id: '00000000000000000000000001',
  name: 'one',
  origin: 'callboard',
  algorithm: 'paac',
  environment: 'CartPole-v1',
  state: 'finished',
  agent_steps: 1000,
  episodes: 100,
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

  it('names the studies that lose a run which is deleted, or resumed with another limit', async () => {
    await show('operator');
    fireEvent.click(button());
    fireEvent.click(await item('Delete'));
    const counted = /^Part of studies: learning rates\. /;
    expect((await screen.findByText(counted)).textContent).toContain('Retry');
    fireEvent.click(await screen.findByRole('button', { name: 'Cancel' }));
    await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
    fireEvent.click(button());
    fireEvent.click(await item('Resume'));
    const bound = await screen.findByRole('textbox', { name: 'Train until' });
    expect((await screen.findByText(counted)).textContent).toContain('With another limit');
    fireEvent.change(bound, { target: { value: '1000' } });
    expect(screen.queryByText(counted)).toBeNull();
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
    {
      stop: { agent_steps: 5000, wall_time_s: 60, score: null },
      proposed: { 'Train until': '5,000', 'Training time (s)': '120' },
      request: { stop: { agent_steps: 5000, wall_time_s: 120, score: null } },
    },
    {
      stop: { agent_steps: null, wall_time_s: 600, score: 20 },
      proposed: { 'Training time (s)': '600', Score: '' },
      request: { stop: { agent_steps: null, wall_time_s: 600, score: null } },
    },
  ])('proposes another limit in place of each that a finished run has reached', async (row) => {
    const run = { ...RUN, wall_time_s: 60, score: 20, spec: { stop: row.stop } } as unknown as Run;
    await show('operator', run);
    fireEvent.click(button());
    fireEvent.click(await item('Resume'));
    const inputs = await screen.findAllByRole<HTMLInputElement>('textbox');
    expect(inputs.map(({ value }) => value)).toEqual(Object.values(row.proposed));
    for (const [name, value] of Object.entries(row.proposed))
      expect(screen.getByRole<HTMLInputElement>('textbox', { name }).value).toBe(value);
    fireEvent.click(screen.getByRole('button', { name: 'Resume' }));
    await waitFor(() => expect(sent).toEqual([row.request]));
  });

  it('offers no fork of the demo run, which has no checkpoint', async () => {
    await show('operator', { ...RUN, demo: true });
    fireEvent.click(button());
    expect((await item('Fork')).getAttribute('data-disabled')).not.toBeNull();
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
