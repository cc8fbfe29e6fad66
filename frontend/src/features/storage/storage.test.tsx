import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider, useQuery } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Host } from '@/api/hosts';
import { keys } from '@/api/keys';
import { retentionQuery, type Policy, type RetentionPreview } from '@/api/storage';
import { DiskTable } from './DiskTable';
import { GroupPolicies } from './GroupPolicies';
import { formatShare, KindTable } from './KindTable';
import { describePolicy, parseDraft, toDraft } from './policy';
import { PolicyForm } from './PolicyForm';
import { RunTable } from './RunTable';

type Answer = { status: number; body: unknown };

const service = vi.hoisted(() => {
  const state = {
    requests: [] as { request: string; body: unknown }[],
    answers: {} as Record<string, Answer>,
    /** What answers wait for. */
    held: Promise.resolve(),
  };
  globalThis.fetch = async (input) => {
    const { method, url } = input as Request;
    const request = `${method} ${url.replace(/^.*\/api\/v1/, '')}`;
    const sent = await (input as Request).text();
    state.requests.push({ request, body: sent ? JSON.parse(sent) : null });
    await state.held;
    const { status, body } = state.answers[request] ?? { status: 500, body: {} };
    return status === 204 ? new Response(null, { status }) : Response.json(body, { status });
  };
  return state;
});

const policy: Policy = { event_logs: 'compress', event_logs_days: 1, checkpoints_last: 5 };
const none = { files: 0, n_bytes: 0 };
const preview: RetentionPreview = {
  runs_checked: 2,
  runs_total: 3,
  checkpoints: { files: 4, n_bytes: 4096 },
  episodes: none,
  videos: none,
  event_logs: { files: 1, n_bytes: 2048 },
  runs_with_old_log_lines: 0,
  audit_entries: 0,
};

beforeEach(() => {
  service.requests.length = 0;
  service.held = Promise.resolve();
  service.answers = { 'POST /retention/preview': { status: 200, body: preview } };
});
afterEach(cleanup);

function show(children: ReactNode, role = 'admin') {
  const client = new QueryClient({
    defaultOptions: { queries: { retry: false, staleTime: Infinity }, mutations: { retry: false } },
  });
  client.setQueryData(keys.me(), { role });
  client.setQueryData(keys.retention(), {
    installation: policy,
    groups: [{ group: 'a/b', policy: { ...policy, checkpoints_best: 2 } }],
  });
  render(
    <QueryClientProvider client={client}>
      <MantineProvider env="test">{children}</MantineProvider>
    </QueryClientProvider>,
  );
  return client;
}

function Groups() {
  const { data } = useQuery(retentionQuery);
  return data ? <GroupPolicies retention={data} /> : null;
}

const type = (label: string, value: string) =>
  fireEvent.change(screen.getByLabelText(label), { target: { value } });
/** Clicks a button, which has the focus then, as in a browser. */
const press = (name: string) => {
  const button = screen.getByRole('button', { name });
  button.focus();
  fireEvent.click(button);
};
/** Lets the service answer nothing until the returned function is called. */
function holdAnswers(): () => void {
  let release = (): void => undefined;
  service.held = new Promise((resolve) => (release = resolve));
  return release;
}
const sent = (request: string) => service.requests.filter((sentRequest) => sentRequest.request === request);

it('KindTable shows sizes and shares with the database, and what is not counted', () => {
  const kinds = [
    { kind: 'checkpoints', files: 1200, n_bytes: 3 * 1024 ** 3 },
    { kind: 'videos', files: 1, n_bytes: 1024 },
  ];
  render(<KindTable storage={{ kinds, database_bytes: 1024 ** 3, removed_files: 1 }} />);
  const cells = (name: string) =>
    within(screen.getByRole('row', { name: new RegExp(name) }))
      .getAllByRole('cell')
      .map(({ textContent }) => textContent.replaceAll('\u00a0', ' '));
  expect(cells('Checkpoints').slice(0, 4)).toEqual(['Checkpoints', '1,200', '3.0 GiB', '75%']);
  expect(cells('Videos')[3]).toBe('< 1%');
  expect(cells('Database')[1]).toBe('–');
  expect(cells('Total')[1]).toBe('4.0 GiB');
  expect(screen.getByText('Excludes 1 removed file that clean-up has not yet deleted.')).toBeTruthy();
  expect([formatShare(0, 0), formatShare(0, 5), formatShare(1, 200)]).toEqual(['0%', '0%', '1%']);
});

it('RunTable links the runs and shows the size of each kind', async () => {
  const run = {
    run_id: 'R',
    name: 'large',
    group: null,
    state: 'finished',
    checkpoints: 2048,
    replays: 0,
    videos: 0,
    media: 0,
    event_logs: 1024,
    total: 3072,
  };
  const rootRoute = createRootRoute({
    component: () => (
      <QueryClientProvider client={new QueryClient()}>
        <MantineProvider>
          <RunTable runs={[run]} />
        </MantineProvider>
      </QueryClientProvider>
    ),
  });
  const router = createRouter({ routeTree: rootRoute, history: createMemoryHistory() });
  await router.load();
  render(<RouterProvider router={router as never} />);
  expect(screen.getByRole('link', { name: 'large' }).getAttribute('href')).toBe('/runs/R');
  const cells = screen.getAllByRole('cell').map(({ textContent }) => textContent.replaceAll('\u00a0', ' '));
  expect(cells.slice(1)).toEqual(['3.0 KiB', '2.0 KiB', '–', '–', '–', '1.0 KiB', 'finished', '–']);
});

it('DiskTable shows free space and what is wrong with a disk', () => {
  const host = (id: string, load: object, alive = true) => ({ id, alive, load }) as unknown as Host;
  const full = { disk_bytes: 1024, disk_free_bytes: 0, disk_problem: 'less than 1 GiB is free' };
  render(<DiskTable hosts={[host('a', full), host('b', { disk_bytes: null }), host('c', full, false)]} />);
  expect(screen.getByRole('row', { name: /^a/ }).textContent).toContain('100%less than 1 GiB is free');
  expect(screen.getByRole('row', { name: /^b/ }).textContent).toContain('not reported');
});

it('PolicyForm shows what would be freed before it saves', async () => {
  const saved = { ...policy, checkpoints_last: 2 };
  service.answers['PUT /retention/installation'] = { status: 200, body: { installation: saved, groups: [] } };
  const client = show(<PolicyForm policy={policy} group={null} denied={undefined} />);
  type('Latest checkpoints', '2');
  press('Preview and save…');
  const dialog = await screen.findByRole('dialog');
  expect(sent('POST /retention/preview')[0]?.body).toMatchObject({
    group: null,
    policy: { checkpoints_last: 2, checkpoints_best: null, event_logs: 'compress', event_logs_days: 1 },
  });
  expect(dialog.textContent).toContain('The policy applies to 3 runs. Only the oldest 2 were checked');
  expect(within(dialog).getByRole('row', { name: /^Checkpoints/ }).textContent).toMatch(/4.*4\.0.KiB/);
  expect(within(dialog).getByRole('row', { name: /^Freed, excluding/ }).textContent).toMatch(/4\.0.KiB/);
  expect(sent('PUT /retention/installation')).toEqual([]);
  fireEvent.click(within(dialog).getByRole('button', { name: 'Save' }));
  await screen.findByText('Saved. Clean-up applies the policy within minutes.');
  expect(sent('PUT /retention/installation')[0]?.body).toMatchObject({
    checkpoints_last: 2,
    audit_days: null,
  });
  expect(document.activeElement?.textContent).toBe('Preview and save…');
  expect(client.getQueryData(keys.retention())).toEqual({ installation: saved, groups: [] });
});

it('PolicyForm discards a preview whose settings were changed before it arrived', async () => {
  const client = show(<PolicyForm policy={policy} group={null} denied={undefined} />);
  const settled = vi.fn();
  client.getMutationCache().subscribe(({ mutation }) => {
    if (mutation?.state.status === 'success') settled();
  });
  const release = holdAnswers();
  type('Latest checkpoints', '2');
  press('Preview and save…');
  type('Latest checkpoints', '1');
  release();
  await waitFor(() => expect(settled).toHaveBeenCalled());
  expect(screen.queryByRole('dialog')).toBeNull();
  press('Preview and save…');
  await screen.findByRole('dialog');
  expect(sent('POST /retention/preview')[1]?.body).toMatchObject({ policy: { checkpoints_last: 1 } });
});

it('GroupPolicies discards preview and error of another name', async () => {
  const client = show(<Groups />, 'operator');
  const settled = vi.fn();
  client.getMutationCache().subscribe(({ mutation }) => {
    if (mutation?.state.status === 'success') settled();
  });
  press('Add group policy');
  type('Group *', 'new');
  const release = holdAnswers();
  press('Preview and save…');
  type('Group *', 'a/b');
  release();
  await waitFor(() => expect(settled).toHaveBeenCalled());
  expect(screen.queryByRole('dialog')).toBeNull();
  const errors = [{ field: 'group', message: 'unknown group' }];
  service.answers['POST /retention/preview'] = { status: 422, body: { detail: 'invalid', errors } };
  type('Group *', 'nwe');
  press('Preview and save…');
  await screen.findByText('unknown group');
  type('Group *', 'new');
  expect(screen.queryByText('unknown group')).toBeNull();
});

it('PolicyForm shows invalid values and the errors of the service at their fields', async () => {
  const errors = [{ field: 'policy.videos_days', message: 'at least 1' }];
  service.answers['POST /retention/preview'] = { status: 422, body: { detail: 'invalid', errors } };
  show(<PolicyForm policy={policy} group={null} denied={undefined} />);
  type('Latest checkpoints', '2.5');
  press('Preview and save…');
  expect(screen.getByText('Enter a whole number.')).toBeTruthy();
  expect(service.requests).toEqual([]);
  await waitFor(() => expect(document.activeElement).toBe(screen.getByLabelText('Latest checkpoints')));
  type('Latest checkpoints', '');
  type('Videos', '0');
  press('Preview and save…');
  await screen.findByText('at least 1');
  await waitFor(() => expect(document.activeElement).toBe(screen.getByLabelText('Videos')));
  expect(screen.queryByRole('dialog')).toBeNull();
  type('Videos', '3');
  expect(screen.queryByText('at least 1')).toBeNull();
});

it('PolicyForm is disabled with the reason for those who may not change it', () => {
  show(<PolicyForm policy={policy} group={null} denied="Requires the role admin; your role is viewer." />);
  expect(screen.getByLabelText<HTMLInputElement>('Videos').disabled).toBe(true);
  expect(screen.getByRole('status').textContent).toBe('Requires the role admin; your role is viewer.');
  press('Preview and save…');
  expect(service.requests).toEqual([]);
});

it('GroupPolicies adds settings that start with those of the installation', async () => {
  const groups = [{ group: 'new', policy }];
  service.answers['PUT /retention/groups'] = { status: 200, body: { installation: policy, groups } };
  show(<Groups />, 'operator');
  press('Add group policy');
  expect(screen.getByLabelText<HTMLInputElement>('Latest checkpoints').value).toBe('5');
  expect(screen.queryByLabelText('Audit trail')).toBeNull();
  press('Preview and save…');
  expect(screen.getByText('Enter the name of a group.')).toBeTruthy();
  type('Group *', 'a/b');
  expect(screen.getByText(/already has a policy/)).toBeTruthy();
  type('Group *', ' new ');
  press('Preview and save…');
  fireEvent.click(within(await screen.findByRole('dialog')).getByRole('button', { name: 'Save' }));
  await screen.findByRole('row', { name: /^new/ });
  const { body } = sent('PUT /retention/groups')[0] ?? {};
  expect(body).toMatchObject({ group: 'new', policy: { checkpoints_last: 5 } });
  expect((body as { policy: object }).policy).not.toHaveProperty('audit_days');
  expect(document.activeElement).toBe(screen.getByRole('region', { name: 'Group retention policies' }));
});

it('GroupPolicies changes and removes settings of a group', async () => {
  service.answers['DELETE /retention/groups?group=a%2Fb'] = { status: 204, body: null };
  service.answers['GET /retention'] = { status: 200, body: { installation: policy, groups: [] } };
  show(<Groups />, 'operator');
  expect(screen.getByRole('row', { name: /a\/ ?b/ }).textContent).toContain('Checkpoints: best 2, latest 5');
  press('Change a/b');
  expect(document.activeElement).toBe(screen.getByRole('heading', { name: 'Policy of a/b' }));
  press('Cancel');
  press('Remove a/b');
  fireEvent.click(within(await screen.findByRole('dialog')).getByRole('button', { name: 'Remove' }));
  await screen.findByText('No group has its own policy.');
});

it('GroupPolicies offers no change to a viewer', () => {
  show(<Groups />, 'viewer');
  for (const name of ['Change a/b', 'Remove a/b', 'Add group policy']) {
    const button = screen.getByRole('button', { name });
    expect([button.title, button.getAttribute('aria-disabled')]).toEqual([
      'Requires the role operator; your role is viewer.',
      'true',
    ]);
  }
});

it('a policy is typed, parsed and described without loss', () => {
  const full = { ...policy, checkpoints_every_agent_steps: 10_000_000, videos_days: 1, log_lines_days: null };
  const { policy: parsed, errors } = parseDraft(toDraft(full));
  expect(errors.size).toBe(0);
  expect(parsed).toMatchObject(full);
  expect(parseDraft({ ...toDraft(full), event_logs_days: '' }).errors.get('event_logs_days')).toBeTruthy();
  expect(describePolicy(full)).toEqual([
    'Checkpoints: latest 5, one every 10,000,000 agent steps',
    'Videos: kept for 1 day',
    'Event logs: compressed after 1 day',
  ]);
});
