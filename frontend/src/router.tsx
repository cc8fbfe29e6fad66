import { useDocumentTitle } from '@mantine/hooks';
import type { QueryClient } from '@tanstack/react-query';
import {
  IconBook2,
  IconChartDots,
  IconChartLine,
  IconDeviceGamepad2,
  IconListDetails,
  IconServer,
  IconSettings,
  IconTrophy,
  type TablerIcon,
} from '@tabler/icons-react';
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from '@tanstack/react-router';
import { useReconnection } from '@/api/liveUpdates';
import { isUnreachable } from '@/api/problem';
import { Loading, Missing, Problem } from '@/components/feedback';
import { AppShell } from '@/features/shell/AppShell';
import { BASE } from '@/lib/base';
import {
  alertsSearch,
  auditSearch,
  compareSearch,
  loginSearch,
  newRunSearch,
  playSearch,
  replaySearch,
  runSearch,
  runsSearch,
  scoresSearch,
  sweepSearch,
  viewSearch,
} from '@/lib/search';
import { loadSettingsFrame, PAGES } from '@/pages';

/** The page for an unknown URL. */
function NotFound() {
  useDocumentTitle('Not found · Callboard');
  return (
    <AppShell>
      <div className="page">
        <h1 className="page-title">Not found</h1>
        <Missing />
      </div>
    </AppShell>
  );
}

/** An error in place of a page. A script that did not load is only fetched again by a full reload. */
export function PageFailed({ error }: { error: unknown }) {
  useReconnection(() => {
    if (isUnreachable(error)) location.reload();
  });
  return (
    <div className="page">
      <Problem error={error} onRetry={() => location.reload()} />
    </div>
  );
}

const rootRoute = createRootRouteWithContext<{ client: QueryClient }>()({ component: Outlet });

const loginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/login',
  validateSearch: loginSearch,
  component: lazyRouteComponent(PAGES['/login']),
});

const shellRoute = createRoute({ getParentRoute: () => rootRoute, id: 'shell', component: AppShell });

const runsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/',
  staticData: { nav: { label: 'Runs', icon: IconListDetails, covers: ['/runs/', '/deleted', '/w/'] } },
  validateSearch: runsSearch,
  component: lazyRouteComponent(PAGES['/']),
});

// A run's URL without its id means the list.
const runsAliasRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/runs',
  beforeLoad: () => redirect({ to: '/', search: {}, replace: true, throw: true }),
});

const deletedRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/deleted',
  component: lazyRouteComponent(PAGES['/deleted']),
});

const newRunRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/new',
  validateSearch: newRunSearch,
  component: lazyRouteComponent(PAGES['/new']),
});

const runRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/runs/$runId',
  validateSearch: runSearch,
  component: lazyRouteComponent(PAGES['/runs/$runId']),
});

const replayRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/runs/$runId/episodes/$episodeId',
  validateSearch: replaySearch,
  component: lazyRouteComponent(PAGES['/runs/$runId/episodes/$episodeId']),
});

const compareRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/compare',
  staticData: { nav: { label: 'Compare', icon: IconChartLine } },
  validateSearch: compareSearch,
  component: lazyRouteComponent(PAGES['/compare']),
});

const viewRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/w/$view',
  validateSearch: viewSearch,
  component: lazyRouteComponent(PAGES['/w/$view']),
});

const sweepsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/sweeps',
  staticData: { nav: { label: 'Sweeps', icon: IconChartDots, underMore: true } },
  component: lazyRouteComponent(PAGES['/sweeps']),
});

const sweepRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/sweeps/$sweepId',
  validateSearch: sweepSearch,
  component: lazyRouteComponent(PAGES['/sweeps/$sweepId']),
});

const papersRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/papers',
  staticData: { nav: { label: 'Papers', icon: IconBook2, underMore: true, covers: ['/studies/'] } },
  component: lazyRouteComponent(PAGES['/papers']),
});

const studyRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/studies/$studyId',
  component: lazyRouteComponent(PAGES['/studies/$studyId']),
});

const scoresRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/scores',
  staticData: { nav: { label: 'Scores', icon: IconTrophy } },
  validateSearch: scoresSearch,
  component: lazyRouteComponent(PAGES['/scores']),
});

const playRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/play',
  staticData: { nav: { label: 'Play', icon: IconDeviceGamepad2, underMore: true } },
  validateSearch: playSearch,
  component: lazyRouteComponent(PAGES['/play']),
});

const playSessionRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/play/$sessionId',
  component: lazyRouteComponent(PAGES['/play/$sessionId']),
});

const recordingRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/play/recordings/$recordingId',
  validateSearch: replaySearch,
  component: lazyRouteComponent(PAGES['/play/recordings/$recordingId']),
});

const hostsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/machines',
  staticData: { nav: { label: 'Machines', icon: IconServer } },
  component: lazyRouteComponent(PAGES['/machines']),
});

const alertsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/alerts',
  validateSearch: alertsSearch,
  component: lazyRouteComponent(PAGES['/alerts']),
});

const settingsRoute = createRoute({
  getParentRoute: () => shellRoute,
  id: 'settings-pages',
  component: lazyRouteComponent(loadSettingsFrame),
});

const accountRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/settings',
  staticData: { nav: { label: 'Settings', icon: IconSettings, underMore: true } },
  component: lazyRouteComponent(PAGES['/settings']),
});

const tokensRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/settings/tokens',
  component: lazyRouteComponent(PAGES['/settings/tokens']),
});

const usersRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/settings/users',
  component: lazyRouteComponent(PAGES['/settings/users']),
});

const storageRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/settings/storage',
  component: lazyRouteComponent(PAGES['/settings/storage']),
});

const auditRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/settings/audit',
  validateSearch: auditSearch,
  component: lazyRouteComponent(PAGES['/settings/audit']),
});

const shortcutsRoute = createRoute({
  getParentRoute: () => settingsRoute,
  path: '/settings/shortcuts',
  component: lazyRouteComponent(PAGES['/settings/shortcuts']),
});

/** Addresses without the part that the settings' pages have in common. */
const settingsAliases = (['storage', 'audit', 'tokens', 'users'] as const).map((page) =>
  createRoute({
    getParentRoute: () => shellRoute,
    path: `/${page}`,
    beforeLoad: () => redirect({ to: `/settings/${page}`, replace: true, throw: true }),
  }),
);

const hostsAliasRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/hosts',
  beforeLoad: () => redirect({ to: '/machines', replace: true, throw: true }),
});

const routeTree = rootRoute.addChildren([
  loginRoute,
  shellRoute.addChildren([
    runsRoute,
    runsAliasRoute,
    deletedRoute,
    newRunRoute,
    runRoute,
    replayRoute,
    compareRoute,
    viewRoute,
    sweepsRoute,
    sweepRoute,
    papersRoute,
    studyRoute,
    scoresRoute,
    playRoute,
    playSessionRoute,
    recordingRoute,
    hostsRoute,
    hostsAliasRoute,
    alertsRoute,
    settingsRoute.addChildren([
      accountRoute,
      tokensRoute,
      usersRoute,
      storageRoute,
      auditRoute,
      shortcutsRoute,
    ]),
    ...settingsAliases,
  ]),
]);

export const createAppRouter = (client: QueryClient) =>
  createRouter({
    routeTree,
    basepath: BASE || '/',
    context: { client },
    defaultPreload: 'intent',
    scrollRestoration: true,
    defaultPendingComponent: () => <Loading label="Loading the page" />,
    defaultErrorComponent: PageFailed,
    defaultNotFoundComponent: NotFound,
    // NotFound renders its own shell.
    notFoundMode: 'root',
  });

/** The place of a page in the navigation, in the order of the routes. */
type NavigationEntry = {
  label: string;
  icon: TablerIcon;
  /** Whether a phone's bar has no room for it. */
  underMore?: boolean;
  /** Beginnings of the other paths that count as this page; those below its own path always do. */
  covers?: string[];
};

declare module '@tanstack/react-router' {
  // eslint-disable-next-line @typescript-eslint/consistent-type-definitions
  interface StaticDataRouteOption {
    /** A page without it must be linked from another one. */
    nav?: NavigationEntry;
  }
  // Only an interface can be merged with the library's.
  // eslint-disable-next-line @typescript-eslint/consistent-type-definitions
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
