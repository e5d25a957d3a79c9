/** The life of a console's connection: when to connect again, and what to say meanwhile. Pure; `socket` and `screen` perform it. */

export type LinkPhase = "connecting" | "open" | "waiting" | "closed";

export interface LinkState {
  phase: LinkPhase;
  /** Attempts in a row that failed. */
  failures: number;
  /** The time of the next attempt in milliseconds, if `phase` is waiting. */
  retryAt: number;
  /** The connection was open at least once. */
  opened: boolean;
  text: string;
}

export type LinkEvent =
  | { type: "connect" }
  | { type: "open" }
  /** `served`: the guest was reached before the connection ended. */
  | { type: "lost"; reason: string; served: boolean; now: number }
  /** The user may not do it: there is no point in trying again. */
  | { type: "refused"; reason: string }
  | { type: "stop" };

export const FIRST_LINK: LinkState = { phase: "connecting", failures: 0, retryAt: 0, opened: false, text: "Connecting …" };

const WAITS = [500, 1000, 2000, 3000, 5000] as const;

export function waitAfter(failures: number): number {
  return WAITS[Math.min(failures, WAITS.length) - 1] ?? WAITS[0];
}

export function nextLink(state: LinkState, event: LinkEvent): LinkState {
  switch (event.type) {
    case "connect":
      return { ...state, phase: "connecting", retryAt: 0, text: state.opened ? "Connecting again …" : "Connecting …" };
    case "open":
      return { ...state, phase: "open", retryAt: 0, opened: true, text: state.opened ? "Connected again" : "Connected" };
    case "stop":
      return { ...state, phase: "closed", retryAt: 0, text: "Disconnected" };
    case "refused":
      return { ...state, phase: "closed", retryAt: 0, text: event.reason ? `The server refused: ${event.reason}` : "The server refused the connection" };
    case "lost": {
      if (state.phase === "closed") return state;
      const failures = event.served ? 1 : state.failures + 1;
      const what = state.opened ? "The connection ended" : "There is no connection";
      const why = event.reason ? `${what}: ${event.reason}` : what;
      return {
        ...state,
        phase: "waiting",
        failures,
        retryAt: event.now + waitAfter(failures),
        text: `${why}${/[.!?]$/.test(why) ? "" : "."} The page connects again when the machine runs.`,
      };
    }
  }
}
