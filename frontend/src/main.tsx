import '@mantine/core/styles.css';
import '@/styles/fonts.css';
import '@/styles/global.css';
import { localStorageColorSchemeManager, MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { makeQueryClient } from '@/api/queryClient';
import { startLive } from '@/api/liveStore';
import { onSignedOut } from '@/api/client';
import { makeRouter } from '@/router';
import { theme } from '@/theme';

const client = makeQueryClient();
const router = makeRouter(client);
const schemes = localStorageColorSchemeManager({ key: 'callboard-color-scheme' });

onSignedOut(() => {
  const { pathname, href } = router.state.location;
  if (pathname === '/login') return;
  // A link that did not work leads here without a session.
  const expired = new URLSearchParams(location.search).get('login') === 'expired';
  void router.navigate({ to: '/login', search: expired ? { expired } : { from: href }, replace: true });
});
if (location.pathname !== '/login') startLive(client);

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <MantineProvider theme={theme} colorSchemeManager={schemes} defaultColorScheme="auto">
        <QueryClientProvider client={client}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}
