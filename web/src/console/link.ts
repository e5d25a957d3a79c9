/** The life of a console's connection: when to connect again, and what to say meanwhile. Pure; `socket` and `screen` perform it. */

export type LinkPhase = "connecting" | "open" | "waiting" | "closed";

export interface LinkState {
  phase: LinkPhase;
  /** Attempts in a row that failed. */
  failures: number;
  /** The time of the next attempt in milliseconds, if `phase` is waiting. */
  retryAt: number;
  /** Connections in a row that reached the guest and ended soon. */
  taken: number;
  /** The connection was open at least once. */
  opened: boolean;
  /** A machine that begins to run is a reason to connect. */
  resumes: boolean;
  text: string;
}

export type LinkEvent =
  | { type: "connect" }
  | { type: "open" }
  /** `served`: the guest was reached before the connection ended. */
  | { type: "lost"; reason: string; served: boolean; lasted: number; now: number }
  /** The user may not do it: there is no point in trying again. */
  | { type: "refused"; reason: string }
  /** The machine has no such device, until somebody changes it. */
  | { type: "absent"; reason: string }
  /** The console is open in a window of its own. */
  | { type: "moved" }
  | { type: "stop" };

export const FIRST_LINK: LinkState = { phase: "connecting", failures: 0, retryAt: 0, taken: 0, opened: false, resumes: true, text: "Connecting …" };

/** A machine gives its console to whoever came last. Two windows that both connect again would take it from each other for ever. */
const TAKEN_MS = 10_000;
const TAKEN_MOST = 2;
const WAITS = [500, 1000, 2000, 3000, 5000] as const;

export function waitAfter(failures: number): number {
  return WAITS[Math.min(failures, WAITS.length) - 1] ?? WAITS[0];
}

export function nextLink(state: LinkState, event: LinkEvent): LinkState {
  switch (event.type) {
    case "connect":
      return { ...state, phase: "connecting", retryAt: 0, resumes: true, text: state.opened ? "Connecting again …" : "Connecting …" };
    case "open":
      return { ...state, phase: "open", retryAt: 0, opened: true, text: state.opened ? "Connected again" : "Connected" };
    case "stop":
      return closed(state, "Disconnected", false);
    case "moved":
      return closed(state, "Open in a window of its own", false);
    case "refused":
      return closed(state, event.reason ? `The server refused: ${event.reason}` : "The server refused the connection", true);
    case "absent":
      return closed(state, `There is nothing to connect to: ${event.reason || "the machine has no such device"}`, true);
    case "lost": {
      if (state.phase === "closed") return state;
      const taken = event.served && event.lasted < TAKEN_MS ? state.taken + 1 : 0;
      if (taken >= TAKEN_MOST) return { ...closed(state, "Another window or person uses it now", false), taken: 0 };
      const failures = event.served ? 1 : state.failures + 1;
      const what = state.opened ? "The connection ended" : "There is no connection";
      const why = event.reason ? `${what}: ${event.reason}` : what;
      return {
        ...state,
        phase: "waiting",
        failures,
        taken,
        retryAt: event.now + waitAfter(failures),
        text: `${why}${/[.!?]$/.test(why) ? "" : "."} The page connects again when the machine runs.`,
      };
    }
  }
}

function closed(state: LinkState, text: string, resumes: boolean): LinkState {
  return { ...state, phase: "closed", retryAt: 0, resumes, text };
}
