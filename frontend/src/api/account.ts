import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { api, take } from './client';
import type { components } from './generated';
import { keys } from './keys';

export type Role = components['schemas']['Role'];
export type User = components['schemas']['UserOut'];
export type Token = components['schemas']['TokenOut'];
export type TokenRequest = components['schemas']['TokenRequest'];
export type UserRequest = components['schemas']['UserRequest'];

export const ROLES: readonly Role[] = ['viewer', 'operator', 'admin'];

export const usersQuery = queryOptions({
  queryKey: keys.users(),
  queryFn: async ({ signal }) =>
    (await take(api.GET('/api/v1/users', { params: { query: { limit: 1000 } }, signal }))).items,
});

export const tokensQuery = infiniteQueryOptions({
  queryKey: keys.tokens(),
  queryFn: ({ pageParam, signal }) =>
    take(api.GET('/api/v1/tokens', { params: { query: { cursor: pageParam } }, signal })),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next_cursor ?? undefined,
});

export const accountActions = {
  changePassword: (current: string, next: string) =>
    take(api.POST('/api/v1/auth/password', { body: { current, new: next } })),
  createToken: (body: TokenRequest) => take(api.POST('/api/v1/tokens', { body })),
  revokeToken: (id: string) =>
    take(api.DELETE('/api/v1/tokens/{token_id}', { params: { path: { token_id: id } } })),
  createUser: (body: UserRequest) => take(api.POST('/api/v1/users', { body })),
  changeUser: (id: string, role: Role) =>
    take(api.PATCH('/api/v1/users/{user_id}', { params: { path: { user_id: id } }, body: { role } })),
  deleteUser: (id: string) =>
    take(api.DELETE('/api/v1/users/{user_id}', { params: { path: { user_id: id } } })),
};

/** Changes users or tokens and then has both fetched anew. */
export function useAccountChange<T, R>(change: (value: T) => Promise<R>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: keys.account() }),
  });
}
