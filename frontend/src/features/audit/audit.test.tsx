import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, expect, it, vi } from 'vitest';
import { auditExportUrl, auditParameters, type AuditEntry, type AuditFilter } from '@/api/audit';
import { auditSearch } from './search';
import { AuditFilterForm } from './AuditFilterForm';
import { AuditTable } from './AuditTable';

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

const Providers = ({ children }: { children: ReactNode }) => (
  <QueryClientProvider client={new QueryClient()}>
    <MantineProvider>{children}</MantineProvider>
  </QueryClientProvider>
);

const entry: AuditEntry = {
  id: 'A',
  time: '2026-11-22T08:00:00Z',
  actor_id: 'U',
  actor_name: 'Anna',
  address: '192.0.2.1',
  action: 'create_runs',
  path: '/api/v1/runs',
  body: { seed: 4 },
  request_id: 'r',
};

it('AuditTable shows the body of a request on demand, and the given name of a failed login', () => {
  const failed = { ...entry, id: 'B', actor_id: null, action: 'log_in_failed', body: {} };
  render(<AuditTable entries={[entry, failed]} />);
  expect(screen.getByRole('region', { name: 'Audit trail' })).toBeTruthy();
  const details = screen.getByText('/api/v1/runs', { selector: 'summary' }).closest('details');
  expect(details?.open).toBe(false);
  expect(details?.querySelector('pre')?.textContent).toBe('{\n  "seed": 4\n}');
  expect(screen.getByText('“Anna” (not signed in)')).toBeTruthy();
});

it('AuditFilterForm filters immediately by action, after typing by user, and exports what matches', async () => {
  const onChange = vi.fn();
  render(
    <Providers>
      <AuditFilterForm filter={{ action: 'log_in' }} actions={['log_in', 'stop_run']} onChange={onChange} />
    </Providers>,
  );
  fireEvent.change(screen.getByLabelText('Action'), { target: { value: 'stop_run' } });
  expect(onChange).toHaveBeenCalledWith({ action: 'stop_run' });
  fireEvent.change(screen.getByLabelText('User'), { target: { value: ' Anna ' } });
  expect(onChange).toHaveBeenCalledTimes(1);
  fireEvent.change(screen.getByLabelText('Address'), { target: { value: '192.' } });
  const typed = { user: 'Anna', address: '192.', from: '', to: '' };
  await waitFor(() => expect(onChange).toHaveBeenLastCalledWith(typed));
  expect(onChange).toHaveBeenCalledTimes(2);
  const csv = screen.getByRole<HTMLAnchorElement>('link', { name: 'Export CSV' });
  expect(csv.getAttribute('href')).toBe('/api/v1/audit/export?format=csv&action=log_in');
});

it('AuditFilterForm keeps a year while it is typed, and offers an action without entries', async () => {
  const onChange = vi.fn();
  render(
    <Providers>
      <AuditFilterForm filter={{ action: 'delete_run' }} actions={['log_in']} onChange={onChange} />
    </Providers>,
  );
  expect(screen.getByLabelText<HTMLSelectElement>('Action').value).toBe('delete_run');
  const from = screen.getByLabelText<HTMLInputElement>('From');
  fireEvent.change(from, { target: { value: '0002-11-22' } });
  expect(from.value).toBe('0002-11-22');
  expect(screen.getByText('Enter a year from 1971 to 9997.')).toBeTruthy();
  fireEvent.change(from, { target: { value: '2026-11-22' } });
  expect(screen.queryByText('Enter a year from 1971 to 9997.')).toBeNull();
  await waitFor(() =>
    expect(onChange).toHaveBeenLastCalledWith({ user: '', address: '', from: '2026-11-22', to: '' }),
  );
  expect(onChange).toHaveBeenCalledTimes(1);
});

it('AuditFilterForm shows the filter of another address, and keeps what is typed before its own arrives', async () => {
  const onChange = vi.fn();
  const form = (filter: AuditFilter) => <AuditFilterForm filter={filter} actions={[]} onChange={onChange} />;
  const field = (label: string) => screen.getByLabelText<HTMLInputElement>(label);
  const { rerender } = render(form({ user: 'Anna' }), { wrapper: Providers });
  rerender(form({ user: 'Bob', from: '2026-11-22' }));
  expect([field('User').value, field('From').value]).toEqual(['Bob', '2026-11-22']);
  fireEvent.change(field('User'), { target: { value: 'Ann ' } });
  await waitFor(() => expect(onChange).toHaveBeenCalledWith(expect.objectContaining({ user: 'Ann' })));
  fireEvent.change(field('User'), { target: { value: 'Ann L' } });
  rerender(form({ user: 'Ann', from: '2026-11-22' }));
  expect(field('User').value).toBe('Ann L');
});

it('AuditFilterForm shows why an export was refused', async () => {
  const errors = [{ field: 'since', message: 'more than 100,000 entries match' }];
  const refusal = Response.json({ detail: 'invalid', errors }, { status: 422 });
  vi.spyOn(globalThis, 'fetch').mockResolvedValue(refusal);
  render(
    <Providers>
      <AuditFilterForm filter={{}} actions={[]} onChange={() => undefined} />
    </Providers>,
  );
  fireEvent.click(screen.getByRole('link', { name: 'Export CSV' }));
  const dialog = await screen.findByRole('dialog', { name: 'Export failed' });
  expect(dialog.textContent).toContain('more than 100,000 entries match');
});

it('auditParameters includes the whole last day', () => {
  const { since, until } = auditParameters({ from: '2026-02-28', to: '2026-02-28', user: '' });
  expect(since).toBe(new Date(2026, 1, 28).toISOString());
  expect(until).toBe(new Date(2026, 2, 1).toISOString());
  expect(auditParameters({ user: '' })).toEqual({});
  expect(auditExportUrl({ user: 'a&b' }, 'json')).toBe('/api/v1/audit/export?format=json&user=a%26b');
});

it('auditSearch drops days that do not exist, or that the service refuses', () => {
  expect(auditSearch({ from: '0002-11-22', to: '9998-12-31' })).toEqual({});
  for (const to of ['2026-13-01', '2026-02-30'])
    expect(auditSearch({ from: '2026-02-28', to, action: '' })).toEqual({ from: '2026-02-28' });
});
