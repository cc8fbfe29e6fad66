import { expect, it } from 'vitest';
import { createQueryClient } from '@/api/client';
import { createAppRouter } from './router';

it('the router redirects /runs to the list', async () => {
  history.replaceState({}, '', '/runs');
  const router = createAppRouter(createQueryClient());
  await router.load();
  expect(router.state.location.href).toBe('/');
});
