import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from './client';
import type { components } from './generated';
import { keys } from './keys';
import { forgetSession } from './session';

export type Role = components['schemas']['Role'];
export type User = components['schemas']['UserOut'];
export type Token = components['schemas']['TokenOut'];
export type LoginSession = components['schemas']['SessionOut'];
export type TokenRequest = components['schemas']['TokenRequest'];
export type UserRequest = components['schemas']['UserRequest'];

export const ROLES: readonly Role[] = ['viewer', 'operator', 'admin'];

export const usersQuery = queryOptions({
  queryKey: keys.users(),
  queryFn: async ({ signal }) =>
    (await unwrap(api.GET('/api/v1/users', { params: { query: { limit: 1000 } }, signal }))).items,
});

export const tokensQuery = infiniteQueryOptions({
  queryKey: keys.tokens(),
  queryFn: ({ pageParam, signal }) =>
    unwrap(api.GET('/api/v1/tokens', { params: { query: { cursor: pageParam } }, signal })),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next_cursor ?? undefined,
});

export const sessionsQuery = infiniteQueryOptions({
  queryKey: keys.sessions(),
  queryFn: ({ pageParam, signal }) =>
    unwrap(api.GET('/api/v1/auth/sessions', { params: { query: { cursor: pageParam } }, signal })),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next_cursor ?? undefined,
});

export const accountActions = {
  changePassword: (current: string, next: string) =>
    unwrap(api.POST('/api/v1/auth/password', { body: { current, new: next } })),
  endSession: (id: string) =>
    unwrap(api.DELETE('/api/v1/auth/sessions/{session_id}', { params: { path: { session_id: id } } })),
  endAllSessions: async () => {
    await unwrap(api.DELETE('/api/v1/auth/sessions'));
    forgetSession();
  },
  createToken: (body: TokenRequest) => unwrap(api.POST('/api/v1/tokens', { body })),
  revokeToken: (id: string) =>
    unwrap(api.DELETE('/api/v1/tokens/{token_id}', { params: { path: { token_id: id } } })),
  createUser: (body: UserRequest) => unwrap(api.POST('/api/v1/users', { body })),
  changeUser: (id: string, role: Role) =>
    unwrap(api.PATCH('/api/v1/users/{user_id}', { params: { path: { user_id: id } }, body: { role } })),
  deleteUser: (id: string) =>
    unwrap(api.DELETE('/api/v1/users/{user_id}', { params: { path: { user_id: id } } })),
};

/** Runs a change of users or tokens, then refetches both. */
export function useAccountMutation<T, R>(change: (value: T) => Promise<R>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: keys.account() }),
  });
}

export const meQuery = queryOptions({
  queryKey: keys.me(),
  queryFn: ({ signal }) => unwrap(api.GET('/api/v1/auth/me', { signal })),
});

/** How users can sign in besides password and link. Without an answer the page offers those two. */
export const loginMethodsQuery = queryOptions({
  queryKey: keys.loginMethods(),
  queryFn: ({ signal }) => unwrap(api.GET('/api/v1/auth/methods', { signal })),
  retry: false,
});

export async function logOut(): Promise<void> {
  await unwrap(api.POST('/api/v1/auth/logout'));
  forgetSession();
}

export const logIn = (name: string, password: string) =>
  unwrap(api.POST('/api/v1/auth/login', { body: { name, password } }));
