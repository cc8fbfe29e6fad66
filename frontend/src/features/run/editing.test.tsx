import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import { ApiProblem } from '@/api/problem';
import type { Run } from '@/api/runs';
import { InlineEdit } from '@/components/InlineEdit';
import { Markdown } from '@/components/Markdown';
import { PermittedButton, useDenied } from '@/components/permission';
import { ExportMenu } from '@/components/run/ExportMenu';
import { Notes } from './Notes';
import { priorityProblem, RunDetails } from './RunDetails';
import { TagEditor } from './TagEditor';
import { useRunEdit } from './useRunEdit';

const requests = vi.hoisted(() => {
  const sent: { method: string; body: unknown }[] = [];
  globalThis.fetch = async (input) => {
    const request = input as Request;
    const body: unknown = await request.json();
    sent.push({ method: request.method, body });
    const { priority, ...fields } = body as { priority?: number };
    // The service keeps priorities to 50.
    return Response.json({
      ...fields,
      ...(priority !== undefined && { priority: Math.min(priority, 50) }),
      id: 'R',
    });
  };
  return sent;
});

vi.mock('@tanstack/react-router', async (original) => ({
  ...(await original<object>()),
  Link: ({ to, search, ...props }: { to: string; search: Record<string, string> }) => (
    <a {...props} href={`${to}?${String(new URLSearchParams(search))}`} />
  ),
}));

let client: QueryClient;

beforeEach(() => {
  requests.length = 0;
  client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(keys.me(), { role: 'operator', missing_extras: [] });
});
afterEach(() => {
  cleanup();
  sessionStorage.clear();
});

const show = (children: ReactNode) =>
  render(
    <QueryClientProvider client={client}>
      <MantineProvider>{children}</MantineProvider>
    </QueryClientProvider>,
  );

function showName(save: (name: string) => Promise<void>, denied?: string) {
  show(
    <InlineEdit field="name" label="name" value="old" maxLength={200} save={save} denied={denied}>
      <h1>old</h1>
    </InlineEdit>,
  );
  const pencil = screen.getByRole('button', { name: 'Edit name' });
  fireEvent.click(pencil);
}

const field = (name: string) => screen.getByRole<HTMLInputElement>('textbox', { name });

it('InlineEdit saves the trimmed text on Enter and returns the focus', async () => {
  const save = vi.fn(() => Promise.resolve());
  showName(save);
  expect(document.activeElement).toBe(field('Name'));
  fireEvent.change(field('Name'), { target: { value: ' new ' } });
  fireEvent.submit(field('Name'));
  await waitFor(() => expect(screen.queryByRole('textbox')).toBeNull());
  expect(save).toHaveBeenCalledWith('new', 'old');
  expect(document.activeElement).toBe(screen.getByRole('button', { name: 'Edit name' }));
});

it('InlineEdit discards the text on Escape', () => {
  const save = vi.fn(() => Promise.resolve());
  showName(save);
  fireEvent.change(field('Name'), { target: { value: 'new' } });
  fireEvent.keyDown(field('Name'), { key: 'Escape' });
  expect(screen.queryByRole('textbox')).toBeNull();
  expect(save).not.toHaveBeenCalled();
  expect(document.activeElement).toBe(screen.getByRole('button', { name: 'Edit name' }));
});

it('InlineEdit shows the error of the service at the field', async () => {
  const problem = new ApiProblem(422, 'Invalid', 'invalid', [{ field: 'name', message: 'too long' }]);
  showName(() => Promise.reject(problem));
  fireEvent.change(field('Name'), { target: { value: 'new' } });
  fireEvent.submit(field('Name'));
  expect(await screen.findByText('too long')).toBeTruthy();
  expect(field('Name').getAttribute('aria-invalid')).toBe('true');
});

it('InlineEdit shows why it is disabled', () => {
  showName(() => Promise.resolve(), 'Requires the role operator; your role is viewer.');
  expect(screen.queryByRole('textbox')).toBeNull();
  const pencil = screen.getByRole('button', { name: 'Edit name' });
  expect(pencil.getAttribute('aria-disabled')).toBe('true');
  expect(pencil.title).toBe('Requires the role operator; your role is viewer.');
});

it('TagEditor links each tag to the runs that have it', () => {
  show(<TagEditor tags={['lr', 'night shift']} save={() => Promise.resolve()} denied="no" />);
  expect(screen.getAllByRole('link').map((link) => link.getAttribute('href'))).toEqual([
    '/?q=tag%3Dlr',
    '/?q=tag%3D%22night+shift%22',
  ]);
});

it('TagEditor of an archived run links to a list that has it', () => {
  show(<TagEditor tags={['lr']} archived save={() => Promise.resolve()} denied="no" />);
  expect(screen.getByRole('link').getAttribute('href')).toBe('/?q=tag%3Dlr&archived=true');
});

it('TagEditor removes and adds tags, and refuses quotes', async () => {
  const save = vi.fn(() => Promise.resolve());
  show(<TagEditor tags={['a', 'b']} save={save} denied={undefined} />);
  fireEvent.click(screen.getByRole('button', { name: 'Remove tag a' }));
  expect(save).toHaveBeenLastCalledWith('Removed tag a', ['b']);
  fireEvent.click(screen.getByRole('button', { name: 'Add tag' }));
  fireEvent.change(field('New tags'), { target: { value: 'c, b, d' } });
  fireEvent.submit(field('New tags'));
  await waitFor(() => expect(field('New tags').value).toBe(''));
  expect(save).toHaveBeenLastCalledWith('Added tags c, d', ['a', 'b', 'c', 'd']);
  fireEvent.change(field('New tags'), { target: { value: '"e"' } });
  fireEvent.submit(field('New tags'));
  expect(screen.getByText('Remove the quotes and backslashes.')).toBeTruthy();
  expect(save).toHaveBeenCalledTimes(2);
});

const run = { id: 'R', name: 'r', tags: ['a'], group: null, priority: 3, notes: '' } as unknown as Run;

function Details({ of = run }: { of?: Run }) {
  return <RunDetails run={of} edit={useRunEdit(of)} denied={undefined} />;
}

it('RunDetails changes by which metric an external run is scored', async () => {
  show(<Details of={{ ...run, origin: 'external', return_metric: null }} />);
  fireEvent.click(screen.getByRole('button', { name: 'Edit return metric' }));
  fireEvent.change(field('Return metric'), { target: { value: 'my/return' } });
  fireEvent.submit(field('Return metric'));
  fireEvent.click(await screen.findByRole('button', { name: 'Undo' }));
  await waitFor(() => expect(screen.queryByRole('button', { name: 'Undo' })).toBeNull());
  expect(requests.map(({ body }) => body)).toEqual([
    { return_metric: 'my/return', expected: { return_metric: null } },
    { return_metric: null, expected: { return_metric: 'my/return' } },
  ]);
});

it('RunDetails sends a change, and the former value to undo it', async () => {
  show(<Details />);
  fireEvent.click(screen.getByRole('button', { name: 'Edit priority' }));
  fireEvent.change(field('Priority'), { target: { value: 'high' } });
  fireEvent.submit(field('Priority'));
  expect(screen.getByText(/Enter a whole number/)).toBeTruthy();
  fireEvent.change(field('Priority'), { target: { value: '5' } });
  fireEvent.submit(field('Priority'));
  const undo = await screen.findByRole('button', { name: 'Undo' });
  expect(screen.getByText(/Changed priority/)).toBeTruthy();
  fireEvent.click(undo);
  await waitFor(() => expect(screen.queryByRole('button', { name: 'Undo' })).toBeNull());
  expect(requests).toEqual([
    { method: 'PATCH', body: { priority: 5, expected: { priority: 3 } } },
    { method: 'PATCH', body: { priority: 3, expected: { priority: 5 } } },
  ]);
});

it('RunDetails undoes what the service has stored, which may be another value', async () => {
  show(<Details />);
  fireEvent.click(screen.getByRole('button', { name: 'Edit priority' }));
  fireEvent.change(field('Priority'), { target: { value: '80' } });
  fireEvent.submit(field('Priority'));
  fireEvent.click(await screen.findByRole('button', { name: 'Undo' }));
  await waitFor(() => expect(requests).toHaveLength(2));
  expect(requests[1]?.body).toEqual({ priority: 3, expected: { priority: 50 } });
});

it.each([
  ['7', null],
  ['-100', null],
  ['101', true],
  ['1.5', true],
  ['', true],
])('priorityProblem checks %j', (typed, invalid) =>
  expect(priorityProblem(typed) === null).toBe(invalid === null),
);

it('Notes are previewed and saved', async () => {
  const save = vi.fn(() => Promise.resolve());
  show(<Notes runId="R" notes="" save={save} denied={undefined} />);
  fireEvent.click(screen.getByRole('button', { name: 'Add notes' }));
  fireEvent.change(field('Notes'), { target: { value: '**sure**' } });
  fireEvent.click(screen.getByRole('radio', { name: 'Preview' }));
  expect((await screen.findByText('sure')).tagName).toBe('STRONG');
  fireEvent.click(screen.getByRole('button', { name: 'Save notes' }));
  await waitFor(() => expect(save).toHaveBeenCalledWith('**sure**', ''));
  await screen.findByRole('button', { name: 'Add notes' });
});

it('Notes that somebody else has changed meanwhile are shown, and replaced only on request', async () => {
  const save = vi.fn(() => Promise.reject(new ApiProblem(409, 'Conflict', 'notes: changed meanwhile')));
  const notes = (text: string) => <Notes runId="R" notes={text} save={save} denied={undefined} />;
  const shown = show(notes('first'));
  fireEvent.click(screen.getByRole('button', { name: 'Edit notes' }));
  fireEvent.change(field('Notes'), { target: { value: 'mine' } });
  expect(screen.queryByRole('alert')).toBeNull();
  shown.unmount();
  show(notes('theirs'));
  expect(screen.getByRole('alert').textContent).toContain('Somebody else has changed these notes meanwhile.');
  expect(screen.getByText('theirs')).toBeTruthy();
  expect(field('Notes').value).toBe('mine');
  fireEvent.click(screen.getByRole('button', { name: 'Save notes' }));
  expect(await screen.findByText('notes: changed meanwhile')).toBeTruthy();
  expect(save).toHaveBeenLastCalledWith('mine', 'first');
  save.mockImplementation(() => Promise.resolve() as Promise<never>);
  fireEvent.click(screen.getByRole('button', { name: 'Replace with mine' }));
  await waitFor(() => expect(save).toHaveBeenLastCalledWith('mine', 'theirs'));
  await screen.findByRole('button', { name: 'Edit notes' });
});

it('InlineEdit sends the value with which it was opened, whatever the page shows meanwhile', async () => {
  const problem = new ApiProblem(409, 'Conflict', '', [{ field: 'name', message: 'is "theirs" now' }]);
  const save = vi.fn(() => Promise.reject(problem));
  const name = (value: string) => (
    <MantineProvider>
      <InlineEdit field="name" label="name" value={value} maxLength={9} save={save} denied={undefined}>
        {value}
      </InlineEdit>
    </MantineProvider>
  );
  const shown = show(name('old'));
  fireEvent.click(screen.getByRole('button', { name: 'Edit name' }));
  shown.rerender(
    <QueryClientProvider client={client}>
      <MantineProvider>{name('theirs')}</MantineProvider>
    </QueryClientProvider>,
  );
  fireEvent.change(field('Name'), { target: { value: 'new' } });
  fireEvent.submit(field('Name'));
  await screen.findByText('is "theirs" now. Save again to replace it.');
  expect(save).toHaveBeenLastCalledWith('new', 'old');
  fireEvent.submit(field('Name'));
  await waitFor(() => expect(save).toHaveBeenLastCalledWith('new', 'theirs'));
});

it('Notes that are not saved are kept with their run until they are saved or cancelled', async () => {
  const notes = (runId: string) => (
    <Notes runId={runId} notes="old" save={() => Promise.resolve()} denied={undefined} />
  );
  for (const leave of ['Cancel', 'Save notes']) {
    const first = show(notes('R'));
    fireEvent.click(screen.getByRole('button', { name: 'Edit notes' }));
    fireEvent.change(field('Notes'), { target: { value: 'a long finding' } });
    first.unmount();
    const other = show(notes('S'));
    screen.getByRole('button', { name: 'Edit notes' });
    other.unmount();
    const again = show(notes('R'));
    expect(field('Notes').value).toBe('a long finding');
    expect(document.activeElement).toBe(document.body);
    screen.getByText('Restored; not saved yet.');
    fireEvent.click(screen.getByRole('button', { name: leave }));
    await screen.findByRole('button', { name: 'Edit notes' });
    again.unmount();
    show(notes('R'));
    screen.getByRole('button', { name: 'Edit notes' });
    cleanup();
  }
});

it('Markdown creates no element from HTML and no link with a dangerous scheme', async () => {
  show(<Markdown text={'<img src=x onerror=alert(1)> [a](javascript:alert(1)) [b](/runs)'} />);
  await screen.findByRole('link', { name: 'b' });
  expect(document.querySelector('img')).toBeNull();
  expect(screen.getAllByRole('link').map((link) => link.getAttribute('href'))).toEqual(['/runs']);
});

function Guarded({ onClick }: { onClick: () => void }) {
  return (
    <PermittedButton denied={useDenied()} onClick={onClick}>
      Stop
    </PermittedButton>
  );
}

it.each([
  ['viewer', 0, 'Requires the role operator; your role is viewer.'],
  ['operator', 1, ''],
  ['admin', 1, ''],
])("the role %s presses an operator's button %i times", (role, presses, reason) => {
  client.setQueryData(keys.me(), { role, missing_extras: [] });
  const pressed = vi.fn();
  show(<Guarded onClick={pressed} />);
  const button = screen.getByRole('button', { name: 'Stop' });
  fireEvent.click(button);
  expect(pressed).toHaveBeenCalledTimes(presses);
  expect(button.title).toBe(reason);
  expect(button.getAttribute('aria-disabled')).toBe(presses ? null : 'true');
});

it('ExportMenu says which formats the server cannot write, and why', async () => {
  client.setQueryData(keys.me(), { role: 'operator', missing_extras: ['parquet'] });
  show(
    <MantineProvider env="test">
      <ExportMenu target={{ ids: ['R'] }} />
    </MantineProvider>,
  );
  fireEvent.click(screen.getByRole('button', { name: 'Export' }));
  const items = await screen.findAllByRole('menuitem');
  expect(items.map((item) => item.getAttribute('href') !== null)).toEqual([false, false, true]);
  expect(
    screen.getByText("The server lacks callboard[parquet]: pip install 'callboard[parquet]'"),
  ).toBeDefined();
});

it('ExportMenu links every format', async () => {
  // As a test: otherwise a menu is hidden as soon as its place is computed, since without a layout it has none.
  show(
    <MantineProvider env="test">
      <ExportMenu target={{ ids: ['R'] }} />
    </MantineProvider>,
  );
  fireEvent.click(screen.getByRole('button', { name: 'Export' }));
  const items = await screen.findAllByRole('menuitem');
  expect(items.map((item) => item.getAttribute('href'))).toEqual(
    ['csv', 'parquet', 'tensorboard'].map((format) => `/api/v1/runs/R/export?format=${format}`),
  );
});
