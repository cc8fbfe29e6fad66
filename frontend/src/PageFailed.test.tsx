import { MantineProvider } from '@mantine/core';
import { QueryClient } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { act } from 'react';
import { afterEach, beforeEach, expect, it, type MockInstance, vi } from 'vitest';
import { startLiveUpdates } from '@/api/liveUpdates';
import { PageFailed } from './router';

/** The stream of the service, which answers nothing else. */
let source: EventTarget;
let stop: () => void;
let reload: MockInstance<() => void>;

beforeEach(() => {
  vi.stubGlobal('EventSource', function Source() {
    source = Object.assign(new EventTarget(), { close: () => undefined });
    return source;
  });
  reload = vi.spyOn(location, 'reload').mockImplementation(() => undefined);
  stop = startLiveUpdates(new QueryClient());
});

afterEach(() => {
  stop();
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const send = (type: string): void =>
  act(() => void source.dispatchEvent(new MessageEvent(type, { data: '{}' })));
const show = (message: string): void =>
  void render(
    <MantineProvider>
      <PageFailed error={new TypeError(message)} />
    </MantineProvider>,
  );

it('a page whose script could not be loaded is loaded once the service is back, and then only', () => {
  show('Failed to fetch dynamically imported module');
  expect(screen.getByText('The service cannot be reached')).toBeTruthy();
  send('resync'); // of the first connection: to load it again might be in vain for ever
  expect(reload).not.toHaveBeenCalled();
  send('stale');
  expect(reload).not.toHaveBeenCalled();
  send('resync');
  expect(reload).toHaveBeenCalledOnce();
});

it('a page with a fault of its own is not loaded again by itself', () => {
  show('x is not a function');
  for (const type of ['resync', 'stale', 'resync']) send(type);
  expect(reload).not.toHaveBeenCalled();
});
