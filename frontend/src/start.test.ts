import { beforeEach, expect, it, vi } from 'vitest';

const fetched = vi.fn((request: Request) =>
  Promise.resolve(Response.json({ path: new URL(request.url).pathname })),
);

vi.mock('./pages', () => ({ scriptsOf: () => [() => Promise.reject(new Error('It does not load.'))] }));

async function startAt(address: string): Promise<void> {
  history.replaceState(null, '', address);
  await import('./start');
}

beforeEach(() => {
  vi.resetModules();
  vi.stubGlobal('fetch', fetched);
  fetched.mockClear();
});

it('the first script requests the session with the secret of the address, and the client takes its answer', async () => {
  sessionStorage.setItem('callboard-login-nonce', 'ours');
  await startAt('/machines#page_secret=abc&nonce=ours');
  expect(location.href).toMatch(/\/machines$/);
  expect(
    fetched.mock.calls.map(([{ url, headers }]) => [new URL(url).pathname, headers.get('X-Page-Secret')]),
  ).toEqual([['/api/v1/auth/me', 'abc']]);
  const { api } = await import('./api/client');
  expect((await api.GET('/api/v1/hosts')).data).toEqual({ path: '/api/v1/hosts' });
  expect((await api.GET('/api/v1/auth/me')).data).toEqual({ path: '/api/v1/auth/me' });
  expect(fetched).toHaveBeenCalledTimes(2);
  await api.GET('/api/v1/auth/me');
  expect(fetched).toHaveBeenCalledTimes(3);
});

it('the page of a login link asks for the login with a nonce, but stays with a valid session', async () => {
  const replace = vi.spyOn(location, 'replace').mockImplementation(() => undefined);
  localStorage.clear();
  await startAt('/login?token=t');
  expect(replace.mock.lastCall?.[0]).toMatch(/^\/login\?token=t&nonce=[\d-]+$/);
  localStorage.setItem('callboard-page-secret', 'kept');
  vi.resetModules();
  await startAt('/login?token=t');
  await vi.waitFor(() => expect(replace).toHaveBeenLastCalledWith('/'));
});

it('the first script of the login requests no session', async () => {
  await startAt('/login');
  expect(fetched).not.toHaveBeenCalled();
});
