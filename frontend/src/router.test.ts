import { expect, it } from 'vitest';
import { createQueryClient } from '@/api/client';
import { createAppRouter } from './router';

const RUN = '/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV';

it.each([
  ['/worlds', '/environments'],
  ['/worlds?q=pong&family=atari', '/environments?q=pong&family=atari'],
  [`${RUN}?tab=internals`, `${RUN}?tab=diagnostics`],
  [`${RUN}?tab=settings&x=frames`, `${RUN}?tab=config&x=frames`],
  ['/runs', '/'],
])('the router redirects %s to %s', async (old, current) => {
  history.replaceState({}, '', old);
  const router = createAppRouter(createQueryClient());
  await router.load();
  expect(router.state.location.href).toBe(current);
});
