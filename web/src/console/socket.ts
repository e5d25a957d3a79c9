/** A WebSocket that connects again after a reboot. `link` decides when; this performs it. */

import { FIRST_LINK, nextLink, type LinkEvent, type LinkState } from "./link";

export interface Channel {
  socket: WebSocket;
  /** Ends this attempt. The link may connect again. */
  end(reason: string): void;
}

export interface LinkOptions {
  address: string;
  /** A new connection is under way; the caller attaches itself to the socket before anything arrives. */
  onAttempt: (channel: Channel) => void;
  onState: (state: LinkState) => void;
}

/** A guest that writes nothing for this long is a guest that is silent. */
const SILENCE_MS = 700;
/** Codes of the console's server: 4000 and the HTTP status. */
const REFUSALS: ReadonlySet<number> = new Set([4401, 4403]);
const ABSENT = 4400;

export class ConsoleLink {
  private state: LinkState = FIRST_LINK;
  private timer = 0;
  private channel: Channel | null = null;

  constructor(private readonly options: LinkOptions) {}

  start(): void {
    this.connect();
  }

  /** A person is impatient: no need to wait. */
  hurry(): void {
    if (this.state.phase === "waiting" || this.state.phase === "closed") this.connect();
  }

  /** The machine runs again. A connection that a person ended stays so. */
  resume(): void {
    if (this.state.resumes) this.hurry();
  }

  stop(): void {
    this.end({ type: "stop" });
  }

  /** Leaves the console to another window. */
  move(): void {
    this.end({ type: "moved" });
  }

  private end(event: LinkEvent): void {
    clearTimeout(this.timer);
    this.tell(event);
    this.channel?.socket.close();
    this.channel = null;
  }

  private connect(): void {
    clearTimeout(this.timer);
    this.tell({ type: "connect" });
    const socket = new WebSocket(this.options.address);
    socket.binaryType = "arraybuffer";
    let ended = false;
    let served = 0;
    let timer = 0;
    const serve = (): void => {
      clearTimeout(timer);
      if (served || ended || this.channel !== channel) return;
      served = Date.now();
      this.tell({ type: "open" });
    };
    const end = (reason: string, code = 0): void => {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      socket.close();
      if (this.channel === channel) this.lost(reason, served, code);
    };
    const channel: Channel = { socket, end };
    this.channel = channel;
    // The console opens the socket before it reaches the guest, and closes it with the reason if it does not.
    socket.addEventListener("open", () => (timer = window.setTimeout(serve, SILENCE_MS)));
    socket.addEventListener("message", serve);
    socket.addEventListener("close", (event) => end(event.reason, event.code));
    this.options.onAttempt(channel);
  }

  private lost(reason: string, served: number, code: number): void {
    this.channel = null;
    if (REFUSALS.has(code)) return this.tell({ type: "refused", reason });
    if (code === ABSENT) return this.tell({ type: "absent", reason });
    const now = Date.now();
    this.tell({ type: "lost", reason, served: served > 0, lasted: now - served, now });
    if (this.state.phase === "waiting") {
      this.timer = window.setTimeout(() => this.connect(), this.state.retryAt - Date.now());
    }
  }

  private tell(event: LinkEvent): void {
    this.state = nextLink(this.state, event);
    this.options.onState(this.state);
  }
}
