import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { LoginSession, Token } from '@/api/account';
import { browserName, creatorName } from './names';
import { SessionsPanel } from './SessionsPanel';
import { TokensPanel } from './TokensPanel';

const service = vi.hoisted(() => {
  const state = { requests: [] as string[], items: {} as Record<string, unknown[]>, more: [] as unknown[] };
  globalThis.fetch = (input) => {
    const { method, url } = input as Request;
    const { pathname: path, searchParams } = new URL(url);
    state.requests.push(`${method} ${path}`);
    if (method === 'DELETE') return Promise.resolve(new Response(null, { status: 204 }));
    if (method === 'POST') return Promise.resolve(Response.json({ name: 'nightly', token: 'cb_secret' }));
    const isLast = searchParams.has('cursor') || state.more.length === 0;
    const items = searchParams.has('cursor') ? state.more : (state.items[path] ?? []);
    return Promise.resolve(Response.json({ items, next_cursor: isLast ? null : 'next' }));
  };
  return state;
});

// The time stands still: on a slow machine it would not be "just now".
const NOW = new Date('2026-11-22T08:00:00Z');

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

const session = (id: string, changes: Partial<LoginSession> = {}): LoginSession => ({
  id,
  current: false,
  method: 'password',
  created_at: NOW.toISOString(),
  last_used_at: NOW.toISOString(),
  expires_at: NOW.toISOString(),
  address: '192.0.2.1',
  user_agent: FIREFOX,
  ...changes,
});

const token: Token = {
  id: 'T',
  user_id: 'U',
  user_name: 'owner',
  name: 'nightly',
  role: 'operator',
  scope: null,
  created_at: NOW.toISOString(),
  created_with: 'token',
  parent_id: 'P',
  parent_name: 'first',
  expires_at: null,
  last_used_at: NOW.toISOString(),
  last_used_address: '192.0.2.7',
};

beforeEach(() => {
  vi.setSystemTime(NOW);
  service.requests.length = 0;
  service.items = {};
  service.more = [];
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const show = (children: ReactNode) =>
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <MantineProvider>{children}</MantineProvider>
    </QueryClientProvider>,
  );

it('SessionsPanel marks this browser and signs another one out', async () => {
  service.items['/api/v1/auth/sessions'] = [session('A', { current: true }), session('B', { address: null })];
  show(<SessionsPanel />);
  const here = await screen.findByRole('row', { name: /\(current\)/ });
  expect(here.textContent).toContain('Firefox on Linux (current)192.0.2.1');
  // The other row's.
  fireEvent.click(screen.getByRole('button', { name: 'Sign out Firefox on Linux' }));
  await waitFor(() => expect(service.requests).toContain('DELETE /api/v1/auth/sessions/B'));
  await waitFor(() => expect(document.activeElement).toBe(screen.getByRole('region', { name: 'Sessions' })));
});

it('SessionsPanel asks before it signs out everywhere', async () => {
  const assign = vi.spyOn(location, 'assign').mockImplementation(() => undefined);
  service.items['/api/v1/auth/sessions'] = [session('A', { current: true })];
  show(<SessionsPanel />);
  fireEvent.click(screen.getByRole('button', { name: 'Sign out everywhere' }));
  expect(service.requests).not.toContain('DELETE /api/v1/auth/sessions');
  const dialog = await screen.findByRole('dialog');
  fireEvent.click(within(dialog).getByRole('button', { name: 'Sign out everywhere' }));
  await waitFor(() => expect(assign).toHaveBeenCalledWith('/login'));
  expect(service.requests).toContain('DELETE /api/v1/auth/sessions');
});

it('TokensPanel shows what created a token and its last use', async () => {
  service.items['/api/v1/tokens'] = [
    token,
    { ...token, id: 'N', name: 'new', scope: 'external_runs', last_used_at: null },
    { ...token, id: 'R', name: 'run 01', scope: 'run', expires_at: null },
  ];
  show(<TokensPanel role="admin" />);
  const used = await screen.findByRole('row', { name: /nightly/ });
  expect(used.textContent).toContain('Token “first”just now');
  expect(within(used).getByTitle('From 192.0.2.7')).toBeTruthy();
  expect(used.textContent).toContain('operator');
  const scoped = screen.getByRole('row', { name: /new/ });
  expect(scoped.textContent).toContain('own external runs only');
  expect(scoped.textContent).toContain('Token “first”Never');
  const ofScript = screen.getByRole('row', { name: /run 01/ });
  expect(ofScript.textContent).toContain('writes this run only');
  expect(ofScript.textContent).toContain('With its script');
});

it('TokensPanel shows more than one page of tokens', async () => {
  service.items['/api/v1/tokens'] = [token];
  service.more = [{ ...token, id: 'O', name: 'oldest' }];
  show(<TokensPanel role="admin" />);
  fireEvent.click(await screen.findByRole('button', { name: 'Show more' }));
  await screen.findByRole('button', { name: 'Revoke oldest' });
  expect(screen.getByRole('button', { name: 'Revoke nightly' })).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Show more' })).toBeNull();
});

it('TokensPanel selects a new token over plain HTTP where the browser does not copy it', async () => {
  vi.stubGlobal('navigator', { userAgent: '', onLine: true });
  Object.assign(document, { execCommand: () => false });
  show(<TokensPanel role="admin" />);
  fireEvent.change(screen.getByRole('textbox', { name: 'Name' }), { target: { value: 'nightly' } });
  fireEvent.click(screen.getByRole('button', { name: 'Create token' }));
  fireEvent.click(await screen.findByRole('button', { name: 'Copy' }));
  await waitFor(() => expect(getSelection()?.toString()).toBe('cb_secret'));
});

it('browserName names browser and system', () => {
  const chrome = 'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36';
  expect(browserName(chrome)).toBe('Chrome on Windows');
  expect(browserName(`${chrome} Edg/140.0`)).toBe('Edge on Windows');
  expect(browserName('curl/8.0')).toBe('curl');
  expect(browserName('')).toBe('Unknown browser');
  expect(browserName(null)).toBe('Unknown browser');
});

it('creatorName shows what created a token', () => {
  const named = (created_with: string | null) => creatorName({ ...token, created_with, parent_name: null });
  expect(['session', 'token', 'command line', null].map(named)).toEqual([
    'Browser',
    'A token',
    'Command line',
    'Unknown',
  ]);
});
