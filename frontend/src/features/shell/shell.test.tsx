import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { keys } from '@/api/keys';
import { ConnectionState, NewRunLink } from './AppShell';
import { KeyedDialogs } from './KeyedDialogs';
import { useFocusKeeper } from './useFocusKeeper';

const connection = vi.hoisted(() => ({ status: 'live', lastEventAt: null }));

vi.mock('@/api/liveUpdates', () => ({ useConnection: () => connection }));

afterEach(cleanup);

function Page() {
  useFocusKeeper();
  const [running, setRunning] = useState(true);
  return (
    <main id="main" tabIndex={-1}>
      <section aria-label="Run">
        {running && <button onClick={() => setRunning(false)}>Stop</button>}
        <button>Archive</button>
      </section>
    </main>
  );
}

describe('useFocusKeeper', () => {
  it('moves the focus of a removed button to the section around it', async () => {
    render(<Page />);
    const stop = screen.getByRole('button', { name: 'Stop' });
    stop.focus();
    fireEvent.click(stop);
    await waitFor(() => expect(document.activeElement).toBe(screen.getByRole('region', { name: 'Run' })));
  });

  it('leaves the focus of another element alone', async () => {
    render(<Page />);
    const archive = screen.getByRole('button', { name: 'Archive' });
    screen.getByRole('button', { name: 'Stop' }).focus();
    archive.focus();
    fireEvent.click(screen.getByRole('button', { name: 'Stop' }));
    await waitFor(() => expect(screen.queryByRole('button', { name: 'Stop' })).toBeNull());
    expect(document.activeElement).toBe(archive);
  });
});

it('leaves the focus away from an element that lost it before', async () => {
  render(<Page />);
  const archive = screen.getByRole('button', { name: 'Archive' });
  archive.focus();
  archive.blur();
  fireEvent.click(screen.getByRole('button', { name: 'Stop' }));
  await waitFor(() => expect(screen.queryByRole('button', { name: 'Stop' })).toBeNull());
  expect(document.activeElement).toBe(document.body);
});

it('NewRunLink of a viewer has no target and names the role that is needed', () => {
  const client = new QueryClient();
  client.setQueryData(keys.me(), { role: 'viewer' });
  render(
    <QueryClientProvider client={client}>
      <NewRunLink />
    </QueryClientProvider>,
  );
  const link = screen.getByRole('link', { name: 'New run' });
  expect(link.getAttribute('aria-disabled')).toBe('true');
  expect(link.title).toContain('operator');
  expect(link.hasAttribute('href')).toBe(false);
});

it.each([
  ['live', false],
  ['reconnecting', true],
  ['offline', true],
])('the connection that is %s is mentioned: %s', (status, isMentioned) => {
  connection.status = status;
  render(
    <MantineProvider env="test">
      <ConnectionState />
    </MantineProvider>,
  );
  const { className, textContent } = screen.getByRole('status');
  expect(textContent).toBe(status); // for screen readers always
  expect(className.includes('visually-hidden')).toBe(!isMentioned);
});

describe('KeyedDialogs', () => {
  it('lists the shortcuts on ?, but not while typing', async () => {
    render(
      <MantineProvider env="test">
        <input aria-label="Name" />
        <KeyedDialogs />
      </MantineProvider>,
    );
    fireEvent.keyDown(screen.getByRole('textbox'), { key: '?' });
    expect(screen.queryByRole('dialog')).toBeNull();
    fireEvent.keyDown(document.body, { key: '?' });
    expect((await screen.findByRole('dialog')).textContent).toContain('Next lost life');
  });
});
