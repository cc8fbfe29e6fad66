/**
 * One event stream a browser. The tab that holds a Web Lock keeps the only EventSource and passes what
 * it hears to the other tabs; when that tab goes, the lock and with it the duty pass to the next.
 */

export type LiveEvent = {
  run?: string;
  revision?: number;
  state?: string;
  host?: string;
  job?: string;
};

export type Connection = {
  status: 'connecting' | 'live' | 'reconnecting';
  /** When something was last heard, in milliseconds since 1970. */
  heardAt: number | null;
};

type Message =
  | { kind: 'event'; event: LiveEvent }
  | { kind: 'resync' }
  | { kind: 'connection'; connection: Connection }
  | { kind: 'who' };

type Listener = {
  onEvent: (event: LiveEvent) => void;
  /** Events may have been missed: everything shown should be fetched again. */
  onResync: () => void;
  onConnection: (connection: Connection) => void;
  /** Asks the service for any small thing; fails when there is no way to it. */
  probe: () => Promise<unknown>;
};

const NAME = 'callboard-live';
const URL = '/api/v1/events';
const RETRY_MS = 2000;
/** Heartbeats are comments, which a page cannot hear: after this long a silence, one asks. */
const SILENCE_MS = 30_000;

export class LiveConnection {
  #connection: Connection = { status: 'connecting', heardAt: null };
  #source: EventSource | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #watch: ReturnType<typeof setInterval> | undefined;
  readonly #channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel(NAME) : undefined;
  readonly #ended = new AbortController();

  constructor(private readonly listener: Listener) {
    this.#channel?.addEventListener('message', ({ data }: MessageEvent<Message>) => this.#hear(data));
  }

  start(): void {
    const locks = 'locks' in navigator ? navigator.locks : undefined;
    if (!locks || !this.#channel) {
      // Without a secure context there are no locks: this tab listens for itself.
      this.#lead();
      return;
    }
    this.#channel.postMessage({ kind: 'who' } satisfies Message);
    const until = new Promise<void>((resolve) => {
      this.#ended.signal.addEventListener('abort', () => resolve());
    });
    locks
      .request(NAME, { signal: this.#ended.signal }, () => {
        this.#lead();
        return until;
      })
      .catch(() => undefined);
  }

  stop(): void {
    this.#ended.abort();
    clearTimeout(this.#retry);
    clearInterval(this.#watch);
    this.#source?.close();
    this.#channel?.close();
  }

  #hear(message: Message): void {
    if (message.kind === 'event') this.listener.onEvent(message.event);
    else if (message.kind === 'resync') this.listener.onResync();
    else if (message.kind === 'connection') this.#become(message.connection);
    else if (this.#source) this.#tell({ kind: 'connection', connection: this.#connection });
  }

  #tell(message: Message): void {
    if (!this.#ended.signal.aborted) this.#channel?.postMessage(message);
  }

  #become(connection: Connection): void {
    this.#connection = connection;
    this.listener.onConnection(connection);
  }

  #announce(status: Connection['status'], heard: boolean): void {
    const heardAt = heard ? Date.now() : this.#connection.heardAt;
    this.#become({ status, heardAt });
    this.#tell({ kind: 'connection', connection: this.#connection });
  }

  #lead(): void {
    this.#open();
    this.#watch = setInterval(() => {
      const { status, heardAt } = this.#connection;
      if (status === 'live' && heardAt !== null && Date.now() - heardAt > SILENCE_MS) this.#probe();
    }, 5000);
  }

  #open(): void {
    const source = new EventSource(URL);
    this.#source = source;
    source.onmessage = ({ data }: MessageEvent<string>) => {
      const event = JSON.parse(data) as LiveEvent;
      this.#connection = { ...this.#connection, heardAt: Date.now() };
      this.listener.onEvent(event);
      this.#tell({ kind: 'event', event });
    };
    source.addEventListener('resync', () => {
      this.#announce('live', true);
      this.listener.onResync();
      this.#tell({ kind: 'resync' });
    });
    // The service answers but cannot hear what changes.
    source.addEventListener('stale', () => this.#announce('reconnecting', false));
    source.onerror = () => this.#reopen();
  }

  #reopen(): void {
    // A refusal, such as of an ended session, comes to light by asking.
    const refused = this.#source?.readyState === EventSource.CLOSED;
    this.#source?.close();
    this.#announce('reconnecting', false);
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#open(), RETRY_MS);
    if (refused) void this.listener.probe().catch(() => undefined);
  }

  #probe(): void {
    this.listener.probe().then(
      () => this.#announce('live', true),
      () => this.#reopen(),
    );
  }
}
