import type { AnyRoute } from '@tanstack/react-router';
import { expect, it } from 'vitest';
import { createQueryClient } from '@/api/client';
import { scriptsOf } from './pages';
import { createAppRouter } from './router';

const SOURCES = import.meta.glob<string>('./**/*.tsx', { query: '?raw', import: 'default', eager: true });

it('the router redirects /runs to the list', async () => {
  history.replaceState({}, '', '/runs');
  const router = createAppRouter(createQueryClient());
  await router.load();
  expect(router.state.location.href).toBe('/');
});

it('the router redirects /hosts to the machines', async () => {
  history.replaceState({}, '', '/hosts');
  const router = createAppRouter(createQueryClient());
  await router.load();
  expect(router.state.location.href).toBe('/machines');
});

it('the router redirects comparisons to the workspace', async () => {
  history.replaceState({}, '', '/compare?group=seed');
  const router = createAppRouter(createQueryClient());
  await router.load();
  expect(router.state.location.href).toBe('/?group=seed&list=beside');
});

it.each(['storage', 'audit', 'tokens', 'users'])('the router redirects /%s to the settings', async (page) => {
  history.replaceState({}, '', `/${page}`);
  const router = createAppRouter(createQueryClient());
  await router.load();
  expect(router.state.location.href).toBe(`/settings/${page}`);
});

it('every page stands in the navigation, or another page links to it', () => {
  const { routesByPath } = createAppRouter(createQueryClient());
  const sources = Object.values(SOURCES).join('\n');
  const lost = Object.entries<AnyRoute>({ ...routesByPath })
    .filter(
      ([, { options }]) =>
        options.component !== undefined && !options.staticData?.nav && !options.staticData?.settings,
    )
    .map(([path]) => path)
    .filter((path) => !sources.includes(`to="${path}"`) && !sources.includes(`to: '${path}'`));
  expect(lost).toEqual([]);
});

it('the scripts of each page of the router are found by its address without the router', () => {
  const { routesByPath } = createAppRouter(createQueryClient());
  const pages = Object.keys(routesByPath).filter((path) => !path.endsWith('_shell'));
  expect(pages.length).toBeGreaterThan(20);
  for (const path of pages) expect(scriptsOf(path), path).toHaveLength(path.startsWith('/settings') ? 2 : 1); // with their frame
});

it.each(['/runs', '/nowhere', '/runs/a/episodes'])('no page has the address %s', (address) =>
  expect(scriptsOf(address)).toEqual([]),
);
