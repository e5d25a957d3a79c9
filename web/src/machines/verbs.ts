import { post } from "../api/client";
import { type Problem, problemOf } from "../api/problem";
import type { Done, MachineRow } from "../generated/answers";
import type { IconName } from "../parts/icon";
import { lackOf } from "../state/rights";
import { me, missing } from "../state/session";

export interface Verb {
  verb: string;
  text: string;
  /** what happened after it, for a sentence such as “Started 3 machines” */
  past: string;
  icon: IconName;
  /** a person has to agree first */
  asks?: boolean;
  danger?: boolean;
}

/** All verbs that the list offers, in the order of its menus. */
export const VERBS: readonly Verb[] = [
  { verb: "start", text: "Start", past: "Started", icon: "play" },
  { verb: "stop", text: "Stop", past: "Stopped", icon: "stop" },
  { verb: "restart", text: "Restart", past: "Restarted", icon: "restart" },
  { verb: "pause", text: "Pause", past: "Paused", icon: "pause" },
  { verb: "unpause", text: "Unpause", past: "Unpaused", icon: "play" },
  { verb: "reset", text: "Reset", past: "Reset", icon: "bolt", asks: true, danger: true },
  { verb: "suspend", text: "Suspend", past: "Suspended", icon: "save" },
  { verb: "resume", text: "Resume", past: "Resumed", icon: "play" },
  { verb: "snapshot", text: "Take a snapshot", past: "Began a snapshot of", icon: "snapshot" },
  { verb: "protect", text: "Protect", past: "Protected", icon: "lock" },
  { verb: "unprotect", text: "Unprotect", past: "Unprotected", icon: "lock" },
  { verb: "delete", text: "Delete", past: "Deleted", icon: "trash", asks: true, danger: true },
];

/** What the machines of a selection have in common: the bulk actions. */
export const BULK = ["start", "stop", "restart", "snapshot", "delete"];

/** Why a verb is not possible for a machine; empty if it is. */
export function refusalOf(verb: string, row: MachineRow): string {
  const lacking = lackOf(row.id, verb);
  if (lacking) return lacking;
  if (OF_OWN_SERVER.includes(verb) && me()?.own === false) return missing("suspend");
  if (row.verbs.includes(verb)) return "";
  if (verb === "delete" && row.protected) return "The machine is protected; unprotect it first.";
  return `Not while the machine is “${row.status || row.state}”.`;
}

// KubeVirt cannot do these anywhere.
const OF_OWN_SERVER = ["suspend", "resume"];

/** Ask the server to do it. Throws `Problem`. */
export const act = (place: string, verb: string, options: Record<string, unknown> = {}): Promise<Done> =>
  post<Done>(`machines/${place}/actions/${verb}`, { options });

export interface Outcome {
  done: MachineRow[];
  failed: { row: MachineRow; problem: Problem }[];
}

const AT_ONCE = 6;

/** Do it for many machines, a few at a time. One that fails keeps no other from its turn. */
export async function actOnAll(rows: readonly MachineRow[], verb: string, options: Record<string, unknown> = {}, one = act): Promise<Outcome> {
  const outcome: Outcome = { done: [], failed: [] };
  const waiting = [...rows];
  const work = async (): Promise<void> => {
    for (let row = waiting.shift(); row; row = waiting.shift()) {
      try {
        await one(row.id, verb, options);
        outcome.done.push(row);
      } catch (thrown) {
        outcome.failed.push({ row, problem: problemOf(thrown) });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return outcome;
}
