import { type QueryClient, queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type View = components['schemas']['ViewOut'];
export type ViewSummary = components['schemas']['ViewSummary'];
export type ViewDocument = components['schemas']['ViewDocument'];
export type ViewRequest = components['schemas']['ViewRequest'];
export type ViewChanges = components['schemas']['ViewChanges'];

/** The named views that the user may open, those changed last first. */
export const viewsQuery = queryOptions({
  queryKey: keys.views(),
  queryFn: async ({ signal }): Promise<readonly ViewSummary[]> =>
    (await unwrap(api.GET('/api/v1/views', { params: { query: { limit: 1000 } }, signal }))).items,
});

const byId = (id: string) => ({ params: { path: { view_id: id } } });

/** A view by its id. */
export const viewQuery = (id: string) =>
  queryOptions({
    queryKey: keys.view(id),
    queryFn: ({ signal }) => unwrap(api.GET('/api/v1/views/{view_id}', { ...byId(id), signal })),
  });

/** What stands in the address of a view, beside its name: its project, and its owner unless that is the user. */
export type ViewPlace = { name: string; project?: string | undefined; by?: string | undefined };

/** The view of an address: the user's own, else the shared one that was changed last; null if there is none. */
export const namedViewQuery = ({ name, project = '', by }: ViewPlace) =>
  queryOptions({
    queryKey: keys.namedView(name, project, by),
    queryFn: async ({ signal }): Promise<View | null> => {
      const query = { name, project, ...(by === undefined ? {} : { owner: by }) };
      const { items } = await unwrap(api.GET('/api/v1/views', { params: { query }, signal }));
      const chosen = items.find(({ mine }) => mine) ?? items[0];
      return chosen ? unwrap(api.GET('/api/v1/views/{view_id}', { ...byId(chosen.id), signal })) : null;
    },
  });

/** The last former documents of a view, the latest first. */
export const viewStatesQuery = (id: string) =>
  queryOptions({
    queryKey: keys.viewStates(id),
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET('/api/v1/views/{view_id}/states', { ...byId(id), signal }))).items,
  });

export const createView = (body: ViewRequest): Promise<View> => unwrap(api.POST('/api/v1/views', { body }));

/** Changes a view; with a version, only as long as it has that. */
export const changeView = (id: string, body: ViewChanges, version?: number): Promise<View> =>
  unwrap(
    api.PATCH('/api/v1/views/{view_id}', {
      params: {
        path: { view_id: id },
        header: version === undefined ? {} : { 'if-match': `"${version}"` },
      },
      body,
    }),
  );

export const deleteView = (id: string): Promise<unknown> =>
  unwrap(api.DELETE('/api/v1/views/{view_id}', byId(id)));

/** Shows a view everywhere as it was saved. */
export function storeView(client: QueryClient, view: View): void {
  client.setQueryData(keys.view(view.id), view);
  client.setQueriesData<View | null>({ queryKey: [...keys.views(), 'named'] }, (shown) =>
    shown?.id === view.id ? view : shown,
  );
  void client.invalidateQueries({ queryKey: keys.views() });
}
