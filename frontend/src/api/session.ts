import { queryOptions } from '@tanstack/react-query';
import { api, take } from './client';
import { keys } from './keys';

export const meQuery = queryOptions({
  queryKey: keys.me(),
  queryFn: ({ signal }) => take(api.GET('/api/v1/auth/me', { signal })),
});

export const logOut = () => take(api.POST('/api/v1/auth/logout'));

export const logIn = (name: string, password: string) =>
  take(api.POST('/api/v1/auth/login', { body: { name, password } }));
