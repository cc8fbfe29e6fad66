import { expect, it } from 'vitest';
import { createQueryClient } from '@/api/client';
import { loadSettingsFrame, PAGES, scriptsOf } from './pages';
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

it.each(['storage', 'audit', 'tokens', 'users'])('the router redirects /%s to the settings', async (page) => {
  history.replaceState({}, '', `/${page}`);
  const router = createAppRouter(createQueryClient());
  await router.load();
  expect(router.state.location.href).toBe(`/settings/${page}`);
});

it('every page stands in the navigation, or another page links to it', () => {
  const { routesById } = createAppRouter(createQueryClient());
  const sources = Object.values(SOURCES).join('\n');
  const lost = Object.values(routesById)
    .filter(({ options }) => options.component !== undefined && !options.staticData?.nav)
    .map(({ fullPath }) => fullPath as string)
    .filter((path) => !sources.includes(`to="${path}"`) && !sources.includes(`to: '${path}'`));
  expect(lost).toEqual([]);
});

it('each page of the router is found by its address without the router', () => {
  const { routesById } = createAppRouter(createQueryClient());
  const paths = Object.entries(routesById)
    .filter(
      ([id, { options }]) =>
        options.component !== undefined && !/__root__$|\/(shell|settings-pages)$/.test(id),
    )
    .map(([, { fullPath }]) => fullPath);
  expect(paths.toSorted()).toEqual(Object.keys(PAGES).toSorted());
});

it.each([
  ['/', [PAGES['/']]],
  ['/compare/', [PAGES['/compare']]],
  ['/runs/01M8', [PAGES['/runs/$runId']]],
  ['/play/recordings/01M8', [PAGES['/play/recordings/$recordingId']]],
  ['/settings', [loadSettingsFrame, PAGES['/settings']]],
  ['/settings/audit', [loadSettingsFrame, PAGES['/settings/audit']]],
  ['/runs', []],
  ['/nowhere', []],
])('the page at %s needs its own scripts', (address, scripts) => {
  expect(scriptsOf(address)).toEqual(scripts);
});
