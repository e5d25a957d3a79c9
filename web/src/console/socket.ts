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

export class ConsoleLink {
  private state: LinkState = FIRST_LINK;
  private timer = 0;
  private channel: Channel | null = null;

  constructor(private readonly options: LinkOptions) {}

  start(): void {
    this.connect();
  }

  /** The machine runs again, or a person is impatient: no need to wait. */
  hurry(): void {
    if (this.state.phase === "waiting" || this.state.phase === "closed") this.connect();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.move({ type: "stop" });
    this.channel?.socket.close();
    this.channel = null;
  }

  private connect(): void {
    clearTimeout(this.timer);
    this.move({ type: "connect" });
    const socket = new WebSocket(this.options.address);
    socket.binaryType = "arraybuffer";
    let ended = false;
    const end = (reason: string): void => {
      if (ended) return;
      ended = true;
      socket.close();
      if (this.channel === channel) this.lost(reason);
    };
    const channel: Channel = { socket, end };
    this.channel = channel;
    socket.addEventListener("open", () => this.channel === channel && this.move({ type: "open" }));
    socket.addEventListener("close", (event) => end(event.reason));
    this.options.onAttempt(channel);
  }

  private lost(reason: string): void {
    this.channel = null;
    this.move({ type: "lost", reason, now: Date.now() });
    if (this.state.phase === "waiting") {
      this.timer = window.setTimeout(() => this.connect(), this.state.retryAt - Date.now());
    }
  }

  private move(event: LinkEvent): void {
    this.state = nextLink(this.state, event);
    this.options.onState(this.state);
  }
}
