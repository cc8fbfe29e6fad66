import '@mantine/core/styles.css';
import '@fontsource-variable/inter/wght.css';
import '@fontsource-variable/jetbrains-mono/wght.css';
import '@/styles/global.css';
import { localStorageColorSchemeManager, MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
// Before the router reads the address.
import '@/start';
import { meQuery } from '@/api/account';
import { createQueryClient, onSignedOut } from '@/api/client';
import { startLiveUpdates } from '@/api/liveUpdates';
import { Toasts } from '@/components/toasts';
import { served } from '@/lib/base';
import { createAppRouter } from '@/router';
import { theme } from '@/theme';

/** How long the page waits for the first answer before it shows itself. */
const FIRST_ANSWER_MS = 2000;

const client = createQueryClient();
const router = createAppRouter(client);
const schemes = localStorageColorSchemeManager({ key: 'callboard-color-scheme' });

onSignedOut(({ secretLost }) => {
  const { pathname, href } = router.state.location;
  if (pathname === '/login') return;
  // An invalid login link redirects here without a session.
  const expired = new URLSearchParams(location.search).get('login') === 'expired';
  const lost = secretLost ? { lost: true as const } : {};
  const search = expired ? { expired } : { from: href, ...lost };
  void router.navigate({ to: '/login', search, replace: true });
});

function show(root: HTMLElement): void {
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

const root = document.getElementById('root');
if (root && location.pathname === served('/login')) show(root);
else if (root) {
  // The scripts of the page come in the meantime; what does not load is shown by the page itself.
  void router.load().catch(() => undefined);
  // Videos and streams need the ticket that comes with it.
  const first = client.query({ ...meQuery, retry: false }).catch(() => undefined);
  const soon = new Promise((resolve) => setTimeout(resolve, FIRST_ANSWER_MS));
  void Promise.race([first, soon]).then(() => {
    if (router.state.location.pathname !== '/login') startLiveUpdates(client);
    show(root);
  });
}
