import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EventStream, SILENCE_MS, type Connection } from './eventStream';

class FakeSource extends EventTarget {
  static readonly CLOSED = 2;
  static opened: FakeSource[] = [];
  readyState = 1;
  onmessage: ((event: MessageEvent<string>) => void) | undefined;
  onerror: (() => void) | undefined;

  constructor() {
    super();
    FakeSource.opened.push(this);
  }

  close(): void {
    this.readyState = FakeSource.CLOSED;
  }

  send(name: string): void {
    this.dispatchEvent(new MessageEvent(name, { data: '{}' }));
  }
}

/** A channel without other tabs. */
class FakeChannel extends EventTarget {
  postMessage(): void {
    // Without a listener.
  }

  close(): void {
    // Nothing is open.
  }
}

const latest = (): FakeSource => {
  const source = FakeSource.opened.at(-1);
  if (!source) throw new Error('no stream was opened');
  return source;
};

describe('EventStream', () => {
  let connection: Connection = { status: 'connecting', lastEventAt: null };
  let resyncs = 0;
  let stream: EventStream;
  let probe: (signal: AbortSignal) => Promise<unknown>;

  beforeEach(() => {
    vi.useFakeTimers();
    FakeSource.opened = [];
    resyncs = 0;
    probe = () => Promise.resolve();
    vi.stubGlobal('EventSource', FakeSource);
    vi.stubGlobal('BroadcastChannel', FakeChannel);
    stream = new EventStream({
      onEvent: () => undefined,
      onResync: () => (resyncs += 1),
      onConnection: (next) => (connection = next),
      probe: (signal) => probe(signal),
    });
    stream.start();
    latest().send('resync');
  });

  afterEach(() => {
    stream.stop();
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it('stays live while heartbeats arrive', () => {
    for (let second = 0; second < 60; second++) {
      vi.advanceTimersByTime(1500);
      latest().send('heartbeat');
    }
    expect(connection.status).toBe('live');
    expect(FakeSource.opened).toHaveLength(1);
  });

  it('shows that the service has lost its events, although heartbeats arrive, until it has them again', () => {
    const heardAt = connection.lastEventAt;
    for (let second = 0; second < 60; second++) {
      latest().send('stale');
      vi.advanceTimersByTime(1500);
      latest().send('heartbeat');
      expect(connection).toEqual({ status: 'reconnecting', lastEventAt: heardAt });
    }
    expect(FakeSource.opened).toHaveLength(1);
    latest().send('resync');
    expect(connection.status).toBe('live');
    latest().send('heartbeat');
    expect(connection.status).toBe('live');
  });

  it('shows a silent service within 5 s and recovers by itself', () => {
    vi.advanceTimersByTime(1000);
    latest().send('heartbeat');
    vi.advanceTimersByTime(SILENCE_MS - 100);
    expect(connection.status).toBe('live');
    vi.advanceTimersByTime(5000 - SILENCE_MS + 100);
    expect(connection.status).toBe('reconnecting');
    expect(FakeSource.opened[0]?.readyState).toBe(FakeSource.CLOSED);
    vi.advanceTimersByTime(20_000);
    expect(FakeSource.opened.length).toBeGreaterThan(2);
    latest().send('resync');
    expect(connection.status).toBe('live');
    expect(resyncs).toBe(2);
  });

  it('shows a cut network immediately, and reopens the stream when it is back', () => {
    dispatchEvent(new Event('offline'));
    expect(connection.status).toBe('offline');
    const before = FakeSource.opened.length;
    dispatchEvent(new Event('online'));
    expect(FakeSource.opened).toHaveLength(before + 1);
    latest().send('resync');
    expect(connection.status).toBe('live');
  });

  it('shows failed requests, although heartbeats arrive, until one is answered', async () => {
    probe = () => Promise.reject(new TypeError('Failed to fetch'));
    const heardAt = connection.lastEventAt;
    stream.onRequest(false);
    await vi.advanceTimersByTimeAsync(0);
    expect(connection.status).toBe('reconnecting');
    for (let second = 0; second < 20; second++) {
      await vi.advanceTimersByTimeAsync(1000);
      latest().send('heartbeat');
      expect(connection).toEqual({ status: 'reconnecting', lastEventAt: heardAt }); // stale since then
    }
    probe = () => Promise.resolve();
    await vi.advanceTimersByTimeAsync(1000);
    latest().send('heartbeat');
    await vi.advanceTimersByTimeAsync(0);
    expect(connection).toEqual({ status: 'live', lastEventAt: Date.now() });
    expect(FakeSource.opened).toHaveLength(1);
    expect(resyncs).toBe(2); // once more, for what could not be fetched
  });

  it('stays live where one address alone fails', async () => {
    stream.onRequest(false);
    expect(connection.status).toBe('live');
    await vi.advanceTimersByTimeAsync(0);
    expect(connection.status).toBe('live');
    expect(resyncs).toBe(1);
  });

  it('gives up a probe that hangs, and probes again', async () => {
    probe = (signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
    stream.onRequest(false);
    for (let waited = 0; waited < SILENCE_MS; waited += 1000) {
      await vi.advanceTimersByTimeAsync(1000);
      latest().send('heartbeat');
    }
    expect(connection.status).toBe('reconnecting');
    probe = () => Promise.resolve();
    await vi.advanceTimersByTimeAsync(SILENCE_MS - 1);
    latest().send('heartbeat');
    await vi.advanceTimersByTimeAsync(1);
    latest().send('heartbeat');
    await vi.advanceTimersByTimeAsync(0);
    expect(connection.status).toBe('live');
  });

  it('stays as stale as it was when the stream drops as well', async () => {
    probe = () => Promise.reject(new TypeError('Failed to fetch'));
    const heardAt = connection.lastEventAt;
    stream.onRequest(false);
    await vi.advanceTimersByTimeAsync(1500);
    latest().send('heartbeat');
    latest().onerror?.();
    expect(connection).toEqual({ status: 'reconnecting', lastEventAt: heardAt });
  });

  it('stays offline where the stream survives, and is live where the service answers all the same', async () => {
    probe = () => Promise.reject(new TypeError('Failed to fetch'));
    dispatchEvent(new Event('offline'));
    latest().send('heartbeat');
    await vi.advanceTimersByTimeAsync(0);
    expect(connection.status).toBe('offline');
    probe = () => Promise.resolve(); // it is on this machine
    latest().send('heartbeat');
    await vi.advanceTimersByTimeAsync(0);
    expect(connection.status).toBe('live');
  });

  it('is shared by the tabs under one base path, not by those of another installation', async () => {
    const names: string[] = [];
    vi.stubGlobal(
      'BroadcastChannel',
      class extends FakeChannel {
        constructor(name: string) {
          super();
          names.push(name);
        }
      },
    );
    const request = (name: string): Promise<void> => Promise.resolve(void names.push(name));
    vi.stubGlobal('navigator', { onLine: true, locks: { request } });
    for (const base of ['/lab', '/office']) {
      vi.resetModules();
      document.head.innerHTML = `<meta name="callboard-base" content="${base}" />`;
      const { EventStream: Stream } = await import('./eventStream');
      const other = new Stream({
        onEvent: () => undefined,
        onResync: () => undefined,
        onConnection: () => undefined,
        probe: () => Promise.resolve(),
      });
      other.start();
      other.stop();
    }
    document.head.innerHTML = '';
    const [channel, lock, ...others] = names;
    expect(lock).toBe(channel);
    expect(others).toHaveLength(2);
    expect(others).not.toContain(channel);
  });

  it('has no stream while its tab is hidden, where tabs cannot share one', () => {
    const visibility = vi.spyOn(document, 'visibilityState', 'get');
    const become = (state: DocumentVisibilityState): void => {
      visibility.mockReturnValue(state);
      document.dispatchEvent(new Event('visibilitychange'));
    };
    become('hidden');
    expect(latest().readyState).toBe(FakeSource.CLOSED);
    vi.advanceTimersByTime(10 * SILENCE_MS);
    expect([FakeSource.opened.length, connection.status]).toEqual([1, 'live']);
    become('visible');
    latest().send('resync');
    expect([FakeSource.opened.length, resyncs]).toEqual([2, 2]);
    visibility.mockRestore();
  });

  it('opens no stream after it was stopped', () => {
    stream.stop();
    vi.advanceTimersByTime(60_000);
    dispatchEvent(new Event('online'));
    expect(FakeSource.opened).toHaveLength(1);
  });
});
