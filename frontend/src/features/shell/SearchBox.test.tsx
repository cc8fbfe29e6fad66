import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from '@tanstack/react-router';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SearchBox } from './SearchBox';

vi.hoisted(() => {
  // The service has not answered yet. The client keeps the function that it finds when it is loaded.
  globalThis.fetch = () => new Promise(() => undefined);
});

beforeEach(() => localStorage.clear());
afterEach(cleanup);

/** Shows the box above the list; returns what the address searches for. */
async function show(): Promise<() => unknown> {
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
  render(
    <QueryClientProvider client={new QueryClient()}>
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
