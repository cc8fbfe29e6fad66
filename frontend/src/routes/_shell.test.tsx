import { QueryClient } from '@tanstack/react-query';
import { cleanup, fireEvent, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import { KeyedDialogs } from '@/features/shell/KeyedDialogs';
import { openPage } from './-openPage';

const RUN = { id: 'A', name: 'dqn Breakout 1', environment: 'ALE/Breakout-v5', state: 'finished' };
const VIEW = { id: 'V', name: 'Nightly', project: 'atari', mine: true, owner: 'me' };
const DOCS = [
  { location: 'guides/alerts.html', title: 'Alerts' },
  { location: 'guides/alerts.html#targets', title: 'Targets &amp; tokens' },
];

const ANSWERS: Record<string, unknown> = {
  '/api/v1/runs': { items: [RUN], total: 1, next_cursor: null },
  '/api/v1/runs/names': { items: [{ run: 'A', name: 'lr 0.001' }], shared: '' },
  '/api/v1/views': { items: [VIEW] },
  '/help/search/search_index.json': { docs: DOCS },
};

beforeEach(() => {
  localStorage.clear();
  vi.stubGlobal('fetch', (input: Request | string) => {
    const { pathname } = new URL(input instanceof Request ? input.url : input, location.href);
    return Promise.resolve(Response.json(ANSWERS[pathname] ?? {}));
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

/** Opens the palette on a page. */
async function open(address = '/play') {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(keys.me(), { id: 'u', name: 'me', role: 'operator' });
  const options = {
    component: KeyedDialogs,
    staticData: { nav: { label: 'Play', icon: () => null, order: 1 } },
  };
  const router = await openPage({ options }, address, address, client);
  fireEvent.keyDown(document.body, { key: 'k', ctrlKey: true });
  return router;
}

const type = async (text: string): Promise<HTMLElement> => {
  const field = await screen.findByRole('combobox', { name: 'Go to' });
  fireEvent.change(field, { target: { value: text } });
  return field;
};

const selected = (): string | null | undefined =>
  screen.queryByRole('option', { selected: true })?.textContent;

it('the palette goes to a run by its short config, which is then the first that it offers', async () => {
  const router = await open();
  const field = await type('lr 0.001');
  await waitFor(() => expect(selected()).toBe('lr 0.001dqn Breakout 1 · Breakout · finished'));
  fireEvent.keyDown(field, { key: 'Enter', code: 'Enter' });
  await waitFor(() => expect(router.state.location.pathname).toBe('/runs/A'));
  await waitFor(() => expect(screen.queryByRole('combobox')).toBeNull());
  cleanup();
  await open();
  await waitFor(() => expect(selected()).toContain('lr 0.001'));
});

it.each([
  ['nightly', 'Nightlyatari'],
  ['play', 'Play'],
  ['tokens', 'Targets & tokensAlerts'],
])('the palette finds %s', async (text, wanted) => {
  ANSWERS['/api/v1/runs'] = { items: [], total: 0, next_cursor: null };
  await open();
  await type(text);
  await waitFor(() => expect(selected()).toBe(wanted));
});

it('the palette presses the key of an action of the page, once it is closed', async () => {
  const pressed: string[] = [];
  const note = ({ key }: KeyboardEvent): void => void pressed.push(key);
  await open('/play/01M8');
  const field = await type('new game');
  await waitFor(() => expect(selected()).toBe('New gameN'));
  window.addEventListener('keydown', note);
  fireEvent.keyDown(field, { key: 'Enter', code: 'Enter' });
  await waitFor(() => expect(pressed).toEqual(['Enter', 'n']));
  window.removeEventListener('keydown', note);
});
