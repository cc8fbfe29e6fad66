import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import { AlertBell } from './AlertBell';

vi.mock('@tanstack/react-router', () => ({
  Link: ({ to, ...props }: { to: string }) => <a href={to} {...props} />,
  useNavigate: () => vi.fn(),
}));

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  localStorage.clear();
});

const alert = (id: string) => ({ id, title: `title ${id}`, text: 'text' });

it('counts unread alerts, and shows those that are new as notifications where these are turned on', async () => {
  const shown: string[] = [];
  class Notification {
    static readonly permission = 'granted';
    constructor(title: string, { tag }: { tag: string }) {
      shown.push(`${title} ${tag}`);
    }
  }
  vi.stubGlobal('Notification', Notification);
  localStorage.setItem('callboard-alert-notifications', 'on');
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  client.setQueryData(keys.unreadAlerts(), { items: [alert('B'), alert('A')], unread: 120 });
  render(
    <QueryClientProvider client={client}>
      <AlertBell />
    </QueryClientProvider>,
  );
  expect(screen.getByRole('link', { name: 'Alerts, 120 unread' }).textContent).toBe('99+');
  expect(shown).toEqual([]);
  const steps = [
    { items: [alert('C'), alert('B')], unread: 121 },
    { items: [], unread: 0 },
    { items: [alert('C')], unread: 1 },
  ];
  for (const data of steps) {
    client.setQueryData(keys.unreadAlerts(), data);
    await screen.findByRole('link', { name: data.unread ? `Alerts, ${data.unread} unread` : 'Alerts' });
  }
  expect(shown).toEqual(['title C callboard-C']);
});
