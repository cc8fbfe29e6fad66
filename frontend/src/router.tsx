import { useDocumentTitle } from '@mantine/hooks';
import type { QueryClient } from '@tanstack/react-query';
import type { TablerIcon } from '@tabler/icons-react';
import { createRouter } from '@tanstack/react-router';
import { useReconnection } from '@/api/liveUpdates';
import { isUnreachable } from '@/api/problem';
import { Loading, Missing, Problem } from '@/components/feedback';
import { AppShell } from '@/features/shell/AppShell';
import { BASE } from '@/lib/base';
import { routeTree } from '@/routeTree.gen';

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

type Place = { label: string; order: number };

/** The place of a page in the navigation. */
type NavigationPlace = Place & {
  icon: TablerIcon;
  /** Whether a phone's bar has no room for it. */
  underMore?: boolean;
  /** Beginnings of the other paths that count as this page; those below its own path always do. */
  covers?: string[];
};

declare module '@tanstack/react-router' {
  // eslint-disable-next-line @typescript-eslint/consistent-type-definitions
  interface StaticDataRouteOption {
    /** A page without a place must be linked from another one. */
    nav?: NavigationPlace;
    /** The place in the navigation of the settings, of some for admins only. */
    settings?: Place & { admin?: boolean };
    /** The place in the palette of a page that is in no navigation. */
    palette?: Place;
  }
  // Only an interface can be merged with the library's.
  // eslint-disable-next-line @typescript-eslint/consistent-type-definitions
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
