import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import { stepNotesQuery } from '@/api/runResources';
import type { Run } from '@/api/runs';
import StepNotesDialog from './StepNotesDialog';

type Sent = { method: string; url: string; body: unknown };

const { sent } = vi.hoisted(() => {
  const sent: Sent[] = [];
  const note = '{"id": "N", "run_id": "R", "agent_steps": 1500, "text": "collapse"}';
  globalThis.fetch = async (input) => {
    const { method, url, body } = input as Request;
    const json = { 'Content-Type': 'application/json' };
    if (method === 'GET') return new Response(`{"items": [${note}]}`, { headers: json });
    const text = body ? await (input as Request).text() : '';
    sent.push({ method, url: new URL(url).pathname, body: text ? JSON.parse(text) : null });
    return new Response(method === 'DELETE' ? null : '{}', {
      status: method === 'DELETE' ? 204 : 200,
      headers: method === 'DELETE' ? { 'Content-Length': '0' } : json,
    });
  };
  return { sent };
});

beforeEach(() => void sent.splice(0));
afterEach(cleanup);

const RUN = { id: 'R', agent_steps: 2000, step_unit: 'agent_steps' } as unknown as Run;
const URL_OF_NOTES = '/api/v1/runs/R/step-notes';

function show(role = 'operator', step?: number) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(keys.me(), { role });
  client.setQueryData(stepNotesQuery('R').queryKey, [
    { id: 'N', run_id: 'R', agent_steps: 1500, text: 'collapse' },
  ] as never);
  render(
    <QueryClientProvider client={client}>
      <MantineProvider env="test">
        <StepNotesDialog run={RUN} step={step} onClose={() => undefined} />
      </MantineProvider>
    </QueryClientProvider>,
  );
}

const stepField = (): HTMLInputElement => screen.getByLabelText('Agent step');

it('adds a note at the proposed step', async () => {
  show('operator', 1200);
  expect(stepField().value).toBe('1,200');
  fireEvent.change(screen.getByLabelText('Note'), { target: { value: 'entropy falls' } });
  fireEvent.click(screen.getByRole('button', { name: 'Add note' }));
  const body = { agent_steps: 1200, text: 'entropy falls' };
  await waitFor(() => expect(sent).toEqual([{ method: 'POST', url: URL_OF_NOTES, body }]));
  await waitFor(() => expect(screen.getByLabelText('Note')).toHaveProperty('value', ''));
});

it('refuses a step that the run has not reached', () => {
  show();
  expect(stepField().value).toBe('2,000');
  fireEvent.change(screen.getByLabelText('Note'), { target: { value: 'later' } });
  fireEvent.change(stepField(), { target: { value: '2001' } });
  expect(screen.getByRole('alert').textContent).toBe('A whole number from 0 to 2,000');
  expect(screen.getByRole('button', { name: 'Add note' })).toHaveProperty('disabled', true);
});

it('edits and deletes a note', async () => {
  show();
  fireEvent.click(screen.getByRole('button', { name: 'Edit the note at 1,500' }));
  fireEvent.change(stepField(), { target: { value: '1,600' } });
  fireEvent.click(screen.getByRole('button', { name: 'Save note' }));
  const body = { agent_steps: 1600, text: 'collapse' };
  await waitFor(() => expect(sent).toEqual([{ method: 'PATCH', url: `${URL_OF_NOTES}/N`, body }]));
  fireEvent.click(screen.getByRole('button', { name: 'Delete the note at 1,500' }));
  await waitFor(() =>
    expect(sent.at(-1)).toEqual({ method: 'DELETE', url: `${URL_OF_NOTES}/N`, body: null }),
  );
});

it('shows a viewer the notes alone', () => {
  show('viewer');
  const [note] = within(screen.getByRole('list', { name: 'Notes' })).getAllByRole('listitem');
  expect(note?.textContent).toBe('1,500collapse');
  expect(screen.queryByRole('form')).toBeNull();
});
