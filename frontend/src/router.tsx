import type { QueryClient } from '@tanstack/react-query';
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from '@tanstack/react-router';
import { Loading, Problem } from '@/components/feedback';
import { Frame } from '@/features/frame/Frame';
import { NotFound } from '@/routes/NotFound';
import {
  compareSearch,
  newRunSearch,
  replaySearch,
  runSearch,
  runsSearch,
  loginSearch,
  worldsSearch,
} from '@/routes/search';

const rootRoute = createRootRouteWithContext<{ client: QueryClient }>()({ component: Outlet });

const loginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/login',
  validateSearch: loginSearch,
  component: lazyRouteComponent(() => import('@/routes/LoginPage')),
});

const frameRoute = createRoute({ getParentRoute: () => rootRoute, id: 'frame', component: Frame });

const runsRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/',
  validateSearch: runsSearch,
  component: lazyRouteComponent(() => import('@/routes/RunsPage')),
});

// Whoever shortens a run's address means the list.
const runsAliasRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/runs',
  beforeLoad: () => redirect({ to: '/', search: {}, replace: true, throw: true }),
});

const newRunRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/new',
  validateSearch: newRunSearch,
  component: lazyRouteComponent(() => import('@/routes/NewRunPage')),
});

const runRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/runs/$runId',
  validateSearch: runSearch,
  component: lazyRouteComponent(() => import('@/routes/RunPage')),
});

const replayRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/runs/$runId/episodes/$episodeId',
  validateSearch: replaySearch,
  component: lazyRouteComponent(() => import('@/routes/ReplayPage')),
});

const compareRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/compare',
  validateSearch: compareSearch,
  component: lazyRouteComponent(() => import('@/routes/ComparePage')),
});

const worldsRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/worlds',
  validateSearch: worldsSearch,
  component: lazyRouteComponent(() => import('@/routes/WorldsPage')),
});

const hostsRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/hosts',
  component: lazyRouteComponent(() => import('@/routes/HostsPage')),
});

const settingsRoute = createRoute({
  getParentRoute: () => frameRoute,
  path: '/settings',
  component: lazyRouteComponent(() => import('@/routes/SettingsPage')),
});

const routeTree = rootRoute.addChildren([
  loginRoute,
  frameRoute.addChildren([
    runsRoute,
    runsAliasRoute,
    newRunRoute,
    runRoute,
    replayRoute,
    compareRoute,
    worldsRoute,
    hostsRoute,
    settingsRoute,
  ]),
]);

export const makeRouter = (client: QueryClient) =>
  createRouter({
    routeTree,
    context: { client },
    defaultPreload: 'intent',
    scrollRestoration: true,
    defaultPendingComponent: () => <Loading label="Loading the page" />,
    // A part of the page that did not come is not asked for again, but by loading all of it.
    defaultErrorComponent: ({ error }) => (
      <div className="page">
        <Problem error={error} onRetry={() => location.reload()} />
      </div>
    ),
    defaultNotFoundComponent: NotFound,
    // It brings a frame of its own.
    notFoundMode: 'root',
  });

declare module '@tanstack/react-router' {
  // Only an interface merges with the library's own.
  // eslint-disable-next-line @typescript-eslint/consistent-type-definitions
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
