/** Shows a page in a test, without the shell. */
import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from '@tanstack/react-router';
import { render } from '@testing-library/react';
import { Toasts } from '@/components/toasts';

const impatient = () => new QueryClient({ defaultOptions: { queries: { retry: false } } });

/**
 * Opens a page at an address.
 *
 * @param page the `Route` of its file.
 * @param path the path of the route, with the parameters' names; that of an index ends with a slash.
 */
export async function openPage(
  page: { options: object },
  path: string,
  address: string,
  client: QueryClient = impatient(),
) {
  const rootRoute = createRootRoute();
  // As in the generated tree, so that the page finds its own route.
  const shell = createRoute({ getParentRoute: () => rootRoute, id: '_shell' });
  const options = { ...page.options, id: undefined, getParentRoute: () => shell, path };
  const route = createRoute(options as never);
  const history = createMemoryHistory({ initialEntries: [address] });
  const router = createRouter({ routeTree: rootRoute.addChildren([shell.addChildren([route])]), history });
  await router.load();
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={client}>
        <RouterProvider router={router as never} />
        <Toasts />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return router;
}
