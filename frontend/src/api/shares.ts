import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type Share = components['schemas']['ShareOut'];
export type NewShare = components['schemas']['NewShare'];
export type ShareRequest = components['schemas']['ShareRequest'];
export type FrozenRequest = components['schemas']['FrozenRequest'];

/** The links that work: one's own, or those of all users. */
export const sharesQuery = (everyone: boolean) =>
  queryOptions({
    queryKey: keys.shares(everyone),
    queryFn: async ({ signal }): Promise<readonly Share[]> =>
      (await unwrap(api.GET('/api/v1/shares', { params: { query: { everyone, limit: 1000 } }, signal })))
        .items,
  });

export const createShare = (body: ShareRequest): Promise<NewShare> =>
  unwrap(api.POST('/api/v1/shares', { body }));

export const revokeShare = (id: string): Promise<unknown> =>
  unwrap(api.DELETE('/api/v1/shares/{share_id}', { params: { path: { share_id: id } } }));

/** A page as one HTML file. */
export const freezePage = (body: FrozenRequest): Promise<Blob> =>
  unwrap(api.POST('/api/v1/shares/frozen', { body, parseAs: 'blob' })) as Promise<Blob>;
