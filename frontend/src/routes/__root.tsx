import type { QueryClient } from '@tanstack/react-query';
import { createRootRouteWithContext, Outlet, redirect } from '@tanstack/react-router';

/** Other addresses of pages: without the part that pages of the settings share, or without an id. */
const ALIASES: Readonly<Record<string, string>> = {
  '/runs': '/',
  '/hosts': '/machines',
  '/storage': '/settings/storage',
  '/audit': '/settings/audit',
  '/tokens': '/settings/tokens',
  '/users': '/settings/users',
};

export const Route = createRootRouteWithContext<{ client: QueryClient }>()({
  component: Outlet,
  beforeLoad: ({ location: { pathname } }) => {
    const to = ALIASES[pathname.replace(/\/$/, '')];
    if (to !== undefined) redirect({ to, replace: true, throw: true });
  },
});
