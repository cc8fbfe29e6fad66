import '@mantine/core/styles.css';
import '@fontsource-variable/inter/wght.css';
import '@fontsource-variable/jetbrains-mono/wght.css';
import '@/styles/global.css';
import { localStorageColorSchemeManager, MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { createQueryClient, onSignedOut } from '@/api/client';
import { startLiveUpdates } from '@/api/liveUpdates';
import { Toasts } from '@/components/toasts';
import { createAppRouter } from '@/router';
import { theme } from '@/theme';

const client = createQueryClient();
const router = createAppRouter(client);
const schemes = localStorageColorSchemeManager({ key: 'callboard-color-scheme' });

onSignedOut(() => {
  const { pathname, href } = router.state.location;
  if (pathname === '/login') return;
  // An invalid login link redirects here without a session.
  const expired = new URLSearchParams(location.search).get('login') === 'expired';
  void router.navigate({ to: '/login', search: expired ? { expired } : { from: href }, replace: true });
});
if (location.pathname !== '/login') startLiveUpdates(client);

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <MantineProvider theme={theme} colorSchemeManager={schemes} defaultColorScheme="auto">
        <QueryClientProvider client={client}>
          <RouterProvider router={router} />
          <Toasts />
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}
