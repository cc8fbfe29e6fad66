/**
 * One server-sent event stream per browser. The tab that holds a Web Lock keeps the only EventSource and
 * broadcasts its events to the other tabs; when that tab closes, the lock passes to another one. Without a secure
 * context there are no locks, and a tab has a stream of its own while it is visible: browsers allow six connections to
 * a host, for all its tabs together.
 *
 * The service sends a heartbeat at least every 1.5 s. Without any message for `SILENCE_MS` the connection counts
 * as lost, even if the browser has not noticed. It also counts as lost while requests fail: a stream may survive the
 * network that new requests need. One failed request may be the fault of its address; a probe decides. Heartbeats do
 * not end the loss; an answered request or the browser’s `online` does.
 */

import { BASE, served } from '@/lib/base';
import type { components } from './generated';
import { withTicket } from './session';

/** Something has changed. */
export type LiveEvent = components['schemas']['ChangeEvent'];

export type Connection = {
  /** `offline`: this device has no network. */
  status: 'connecting' | 'live' | 'reconnecting' | 'offline';
  /** Milliseconds since 1970. */
  lastEventAt: number | null;
};

type Message =
  | { kind: 'event'; event: LiveEvent }
  | { kind: 'resync' }
  | { kind: 'connection'; connection: Connection }
  | { kind: 'status-request' };

type Listener = {
  onEvent: (event: LiveEvent) => void;
  /**
   * Events may have been missed: everything on screen has to be refetched, except what was requested after the last
   * change, `quietMs` ago; 0 where that is not known.
   */
  onResync: (quietMs: number) => void;
  onConnection: (connection: Connection) => void;
  /** Sends any small request; rejects when the service cannot be reached, whatever the status of its answer. */
  probe: (signal: AbortSignal) => Promise<unknown>;
};

/** Of the lock and the channel. Both are per origin, which installations under several base paths share. */
const NAME = `callboard-live${BASE}`;
const URL = served('/api/v1/events');
const RETRY_MS = 2000;
/** Three missed heartbeats at a service under load; a lost connection shows within 5 s. */
export const SILENCE_MS = 4000;
const CHECK_MS = 500;

export class EventStream {
  /** Of the stream. */
  #connection: Connection = { status: 'connecting', lastEventAt: null };
  /** What is shown in place of a live stream while requests of this tab fail. */
  #lost: Connection | undefined;
  #probing = false;
  /** Whether this tab shares no stream with others. */
  #isAlone = false;
  /** Whether the service has lost its own source of events: its heartbeats go on. */
  #stale = false;
  #source: EventSource | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #watchdog: ReturnType<typeof setInterval> | undefined;
  /** When this tab last received anything from the service, or requested a stream. */
  #heardAt = Date.now();
  readonly #channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel(NAME) : undefined;
  readonly #stopped = new AbortController();

  constructor(private readonly listener: Listener) {
    this.#channel?.addEventListener('message', ({ data }: MessageEvent<Message>) => this.#onMessage(data));
  }

  start(): void {
    const { signal } = this.#stopped;
    addEventListener('offline', () => this.#goOffline(), { signal });
    addEventListener('online', () => this.#goOnline(), { signal });
    this.#watchdog = setInterval(() => this.#checkSilence(), CHECK_MS);
    const locks = 'locks' in navigator ? navigator.locks : undefined;
    if (!locks || !this.#channel) {
      this.#isAlone = true;
      document.addEventListener('visibilitychange', () => this.#follow(), { signal });
      this.#follow();
      return;
    }
    this.#channel.postMessage({ kind: 'status-request' } satisfies Message);
    const untilStopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    locks
      .request(NAME, { signal }, () => {
        this.#open();
        return untilStopped;
      })
      .catch(() => undefined);
  }

  /** Of a tab that shares no stream. */
  #follow(): void {
    if (document.visibilityState === 'visible') this.#open();
    else {
      clearTimeout(this.#retry);
      this.#source?.close();
      this.#source = undefined;
    }
  }

  stop(): void {
    this.#stopped.abort();
    clearTimeout(this.#retry);
    clearInterval(this.#watchdog);
    this.#source?.close();
    this.#channel?.close();
  }

  /** Receives whether a request of this tab was answered, with whatever status. */
  onRequest(answered: boolean): void {
    if (!answered) this.#probe();
    else if (this.#lost) {
      this.#lost = undefined;
      this.#setConnection(this.#connection);
      // What the events of the meantime have changed could not be fetched; a stream that opens again resyncs itself.
      if (this.#connection.status === 'live') this.listener.onResync(0);
    }
  }

  #lose(status: Connection['status']): void {
    if (this.#stopped.signal.aborted) return;
    this.#lost = { status, lastEventAt: (this.#lost ?? this.#connection).lastEventAt };
    this.listener.onConnection(this.#lost);
  }

  #onMessage(message: Message): void {
    if (message.kind === 'event') {
      this.#heardAt = Date.now();
      this.listener.onEvent(message.event);
    } else if (message.kind === 'resync') this.listener.onResync(0);
    else if (message.kind === 'connection') {
      this.#heardAt = Date.now();
      this.#setConnection(message.connection);
    } else if (this.#source) this.#broadcast({ kind: 'connection', connection: this.#connection });
  }

  #broadcast(message: Message): void {
    if (!this.#stopped.signal.aborted && !this.#isAlone) this.#channel?.postMessage(message);
  }

  #setConnection(connection: Connection): void {
    this.#connection = connection;
    const isLive = connection.status === 'live';
    const status = isLive && this.#lost ? this.#lost.status : connection.status;
    this.listener.onConnection({ status, lastEventAt: (this.#lost ?? connection).lastEventAt });
    if (isLive && this.#lost) this.#probe();
  }

  #probe(): void {
    if (this.#probing) return;
    this.#probing = true;
    const attempt = new AbortController();
    const timeout = setTimeout(() => attempt.abort(), SILENCE_MS);
    this.listener
      .probe(attempt.signal)
      .then(
        () => this.onRequest(true),
        () => this.#lose(this.#lost?.status ?? (navigator.onLine ? 'reconnecting' : 'offline')),
      )
      .finally(() => {
        clearTimeout(timeout);
        this.#probing = false;
      });
  }

  #setStatus(status: Connection['status'], received: boolean): void {
    const lastEventAt = received ? Date.now() : this.#connection.lastEventAt;
    this.#setConnection({ status, lastEventAt });
    this.#broadcast({ kind: 'connection', connection: this.#connection });
  }

  #open(): void {
    clearTimeout(this.#retry);
    this.#source?.close();
    this.#heardAt = Date.now();
    const source = new EventSource(withTicket(URL));
    this.#source = source;
    this.#stale = false;
    source.onmessage = ({ data }: MessageEvent<string>) => {
      const event = JSON.parse(data) as LiveEvent;
      this.#heardAt = Date.now();
      this.#connection = { ...this.#connection, lastEventAt: this.#heardAt };
      this.listener.onEvent(event);
      this.#broadcast({ kind: 'event', event });
    };
    source.addEventListener('resync', ({ data }: MessageEvent<string>) => {
      const { quiet_s = 0 } = JSON.parse(data) as { quiet_s?: number };
      this.#heardAt = Date.now();
      this.#stale = false;
      this.#setStatus('live', true);
      this.listener.onResync(1000 * quiet_s);
      this.#broadcast({ kind: 'resync' });
    });
    source.addEventListener('heartbeat', () => {
      this.#heardAt = Date.now();
      if (!this.#stale) this.#setStatus('live', true);
    });
    source.addEventListener('stale', () => {
      this.#heardAt = Date.now();
      this.#stale = true;
      this.#setStatus('reconnecting', false);
    });
    source.onerror = () => this.#reopen();
  }

  #reopen(): void {
    // An EventSource hides the status of a rejected request, such as 401: the probe's handler sees it.
    const rejected = this.#source?.readyState === EventSource.CLOSED;
    this.#source?.close();
    this.#heardAt = Date.now();
    this.#setStatus(navigator.onLine ? 'reconnecting' : 'offline', false);
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#open(), RETRY_MS);
    if (rejected) this.#probe();
  }

  #checkSilence(): void {
    if (Date.now() - this.#heardAt <= SILENCE_MS) return;
    if (this.#source) this.#reopen();
    else if (!this.#isAlone) {
      // The tab with the stream is silent too.
      const { lastEventAt } = this.#connection;
      this.#setConnection({ status: navigator.onLine ? 'reconnecting' : 'offline', lastEventAt });
    }
  }

  #goOffline(): void {
    this.#lose('offline');
  }

  #goOnline(): void {
    this.#lost = undefined;
    if (this.#source) this.#open();
  }
}
