import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import { forgetSession } from '@/api/session';
import { SearchBox } from './SearchBox';

vi.hoisted(() => {
  // The service has not answered yet.
  globalThis.fetch = () => new Promise(() => undefined);
});

beforeEach(() => localStorage.clear());
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

/** Shows the box above the list to a user; returns what the address searches for. */
async function show(user = 'ada'): Promise<() => unknown> {
  const rootRoute = createRootRoute();
  const list = createRoute({
    getParentRoute: () => rootRoute,
    path: '/',
    validateSearch: ({ q }) => ({ q: q as string | undefined }),
    component: SearchBox,
  });
  const history = createMemoryHistory({ initialEntries: ['/'] });
  const router = createRouter({ routeTree: rootRoute.addChildren([list]), history });
  await router.load();
  const client = new QueryClient();
  client.setQueryData(keys.me(), { id: user });
  render(
    <QueryClientProvider client={client}>
      <MantineProvider env="test">
        <RouterProvider router={router as never} />
      </MantineProvider>
    </QueryClientProvider>,
  );
  return () => (router.state.location.search as { q?: string }).q;
}

const box = () => screen.getByRole<HTMLInputElement>('searchbox', { name: 'Search runs' });

function type(text: string): void {
  fireEvent.focus(box());
  fireEvent.change(box(), { target: { value: text } });
}

const offered = () => screen.queryAllByRole('option', { hidden: true }).map(({ textContent }) => textContent);

/** Presses a key; returns whether the box has taken it, so that the browser does nothing with it. */
const takes = (key: string): boolean => !fireEvent.keyDown(box(), { key });

it.each(['Tab', 'Enter'])('%s takes the first completion, without an arrow key before', async (key) => {
  await show();
  type('state:fin');
  expect(offered()).toEqual(['state:finished']);
  expect(takes(key)).toBe(true);
  expect(box().value).toBe('state:finished');
});

it('Enter searches where nothing is unfinished, and Tab leaves an empty box', async () => {
  const query = await show();
  expect(takes('Tab')).toBe(false);
  type('state:finished');
  expect(takes('Enter')).toBe(false);
  fireEvent.submit(box());
  await vi.waitFor(() => expect(query()).toBe('state:finished'));
});

it('an empty box offers the latest queries, each once', async () => {
  const query = await show();
  for (const text of ['tag:a', 'tag:b', 'tag:a']) {
    type(text);
    fireEvent.submit(box());
  }
  type('');
  expect(offered()).toEqual(['tag:a', 'tag:b']);
  fireEvent.click(screen.getByText('tag:b'));
  await vi.waitFor(() => expect(query()).toBe('tag:b'));
  type('');
  expect(offered()).toEqual(['tag:b', 'tag:a']);
});

it('an empty box names the key that focuses it, until it has the focus', async () => {
  await show();
  expect(box().placeholder).toBe('Search runs…');
  expect(screen.getByText('/').tagName).toBe('KBD');
  fireEvent.focus(box());
  expect(screen.queryByText('/')).toBeNull();
});

const KEY = 'callboard-recent-queries:ada';

function searchFor(text: string): void {
  type(text);
  fireEvent.submit(box());
  type('');
}

it('the latest queries are offered to their user alone, until the session ends', async () => {
  await show();
  searchFor('tag:secret');
  cleanup();
  await show('bob');
  type('');
  expect(offered()).toEqual([]);
  cleanup();
  await show();
  type('');
  expect(offered()).toEqual(['tag:secret']);
  cleanup();
  forgetSession();
  await show();
  type('');
  expect(offered()).toEqual([]);
});

it('a query of more than 500 characters is not kept', async () => {
  await show();
  searchFor('x'.repeat(501));
  expect(offered()).toEqual([]);
});

it.each(['null', '"x"', '{}', '[1, null]', '{'])(
  'stored queries of another version are ignored: %s',
  async (stored) => {
    localStorage.setItem(KEY, stored);
    await show();
    type('');
    expect(offered()).toEqual([]);
  },
);

it('Tab leaves a box of blanks, which offers the latest queries', async () => {
  await show();
  searchFor('tag:a');
  type('  ');
  expect(offered()).toEqual(['tag:a']);
  expect(takes('Tab')).toBe(false);
});

it('a search on another page leads to the list, without the parameters of that page', async () => {
  const rootRoute = createRootRoute();
  const routes = ['/', '/sweeps/a'].map((path) =>
    createRoute({ getParentRoute: () => rootRoute, path, component: SearchBox }),
  );
  const history = createMemoryHistory({ initialEntries: ['/sweeps/a?setting=seed'] });
  vi.stubGlobal('location', { pathname: '/sweeps/a' });
  const router = createRouter({ routeTree: rootRoute.addChildren(routes), history });
  await router.load();
  render(
    <QueryClientProvider client={new QueryClient()}>
      <MantineProvider env="test">
        <RouterProvider router={router as never} />
      </MantineProvider>
    </QueryClientProvider>,
  );
  type('tag:a');
  fireEvent.submit(box());
  await waitFor(() => expect(history.location.pathname).toBe('/'));
  expect(history.location.search).toBe('?q=tag%3Aa');
  expect(history.length).toBe(2);
});
