import { screen } from '@testing-library/react';
import { expect, it, vi } from 'vitest';

const refused = vi.hoisted(() => {
  const paths: string[] = [];
  // Nobody is signed in.
  globalThis.fetch = (request) => {
    const { pathname } = new URL((request as Request).url);
    if (pathname === '/api/v1/auth/methods') return Promise.resolve(Response.json({ password: true }));
    paths.push(pathname);
    return Promise.resolve(Response.json({ title: 'Unauthorized' }, { status: 401 }));
  };
  return paths;
});

it('a visitor who is not signed in is asked to after one refused request', async () => {
  history.replaceState({}, '', '/');
  document.body.innerHTML = '<div id="root"></div>';
  await import('./main');
  expect(await screen.findByRole('heading', { name: 'Sign in to Callboard' })).toBeTruthy();
  expect(refused).toEqual(['/api/v1/auth/me']);
});
