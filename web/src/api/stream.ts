import { address } from "./client";

/** A row of any topic. */
export interface Row {
  id: string;
}

/** All rows of a topic. */
export interface Reset {
  topic: string;
  rows: Row[];
}

/** Rows that are new or differ, and the ids of rows that are gone. */
export interface Change {
  topic: string;
  set: Row[];
  gone: string[];
}

/** The server behind the console is away. */
export interface Lost {
  why: string;
  since: string;
}

/** What the stream reports. `closed`: the console itself cannot be reached, or ended the session. */
export interface Listener {
  opened(): void;
  reset(reset: Reset): void;
  change(change: Change): void;
  lost(lost: Lost): void;
  closed(): void;
}

/** The part of EventSource that the stream uses; tests give another one. */
export interface Source {
  addEventListener(type: string, listener: (event: { data?: string }) => void): void;
  close(): void;
  readonly readyState: number;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
const CLOSED = 2;

/** The pause before the n-th attempt to connect again, counted from 0. */
export function pauseBefore(attempt: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt);
}

/** Rows after a change. The given map stays as it is. */
export function changed<T extends Row>(rows: ReadonlyMap<string, T>, change: { set: T[]; gone: string[] }): ReadonlyMap<string, T> {
  const next = new Map(rows);
  for (const id of change.gone) next.delete(id);
  for (const row of change.set) next.set(row.id, row);
  return next;
}

export interface Clock {
  after(milliseconds: number, action: () => void): () => void;
}

const browserClock: Clock = {
  after(milliseconds, action) {
    const timer = setTimeout(action, milliseconds);
    return () => clearTimeout(timer);
  },
};

/**
 * One connection with the topics of all open pages. There is no replay: each connection begins with a reset of each topic,
 * so rows stay on the page until then.
 */
export class Stream {
  #source: Source | null = null;
  #topics: readonly string[] = [];
  #attempt = 0;
  #cancelPause = (): void => {};

  constructor(
    private readonly listener: Listener,
    private readonly open: (url: string) => Source = (url) => new EventSource(url) as unknown as Source,
    private readonly clock: Clock = browserClock,
  ) {}

  /** Listen to these topics and to no other. */
  follow(topics: readonly string[]): void {
    const sorted = [...topics].sort();
    if (sorted.join() === this.#topics.join()) return;
    this.#topics = sorted;
    this.connect();
  }

  /** Connect now, without waiting for a pause to end. */
  connect(): void {
    this.#drop();
    if (!this.#topics.length) return;
    const source = this.open(address("stream", { topics: this.#topics.join(",") }));
    this.#source = source;
    const on = (type: string, action: (data: string) => void): void =>
      source.addEventListener(type, (event) => {
        if (source === this.#source) action(event.data ?? "");
      });
    on("open", () => {
      this.#attempt = 0;
      this.listener.opened();
    });
    on("reset", (data) => this.listener.reset(JSON.parse(data) as Reset));
    on("change", (data) => this.listener.change(JSON.parse(data) as Change));
    on("lost", (data) => this.listener.lost(JSON.parse(data) as Lost));
    on("error", () => this.#failed(source));
  }

  /** End the connection, until the next `follow`. */
  close(): void {
    this.#topics = [];
    this.#drop();
  }

  #drop(): void {
    this.#cancelPause();
    this.#source?.close();
    this.#source = null;
  }

  // A browser tries again by itself after a break, but never after an answer that is no stream.
  #failed(source: Source): void {
    this.listener.closed();
    if (source.readyState !== CLOSED) return;
    this.#source = null;
    this.#cancelPause();
    this.#cancelPause = this.clock.after(pauseBefore(this.#attempt), () => this.connect());
    this.#attempt += 1;
  }
}
