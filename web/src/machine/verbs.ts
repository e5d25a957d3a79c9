/** The verbs of a machine: their names, their order, and what the page asks before it sends them. */

import type { ActionState } from "../generated/answers";
import type { IconName } from "../parts/icon";

export interface VerbWords {
  label: string;
  icon: IconName;
  /** Asked before the verb is sent; `%` stands for the machine. Empty: nothing is asked. */
  question: string;
  danger: boolean;
}

const NO_QUESTION = { question: "", danger: false } as const;

export const VERBS: Readonly<Record<string, VerbWords>> = {
  start: { label: "Start", icon: "play", ...NO_QUESTION },
  stop: { label: "Stop", icon: "stop", ...NO_QUESTION },
  restart: { label: "Restart", icon: "restart", ...NO_QUESTION },
  pause: { label: "Pause", icon: "pause", ...NO_QUESTION },
  unpause: { label: "Unpause", icon: "play", ...NO_QUESTION },
  snapshot: { label: "Snapshot", icon: "snapshot", ...NO_QUESTION },
  suspend: { label: "Suspend", icon: "save", ...NO_QUESTION },
  resume: { label: "Resume", icon: "play", ...NO_QUESTION },
  restore: { label: "Restore", icon: "restart", ...NO_QUESTION },
  clone: { label: "Clone", icon: "copy", ...NO_QUESTION },
  protect: { label: "Protect", icon: "lock", ...NO_QUESTION },
  unprotect: { label: "Remove protection", icon: "lock", ...NO_QUESTION },
  reset: {
    label: "Reset",
    icon: "bolt",
    question: "A reset is like the reset button: the guest has no time to write what it holds in memory. Data can get lost.",
    danger: true,
  },
  delete: { label: "Delete", icon: "trash", question: "Paddock deletes % and the disks that belong to it alone.", danger: true },
};

/** Beside each other in the header; of two verbs in one place, the one that is allowed stands there. */
const IN_HEADER: readonly (readonly string[])[] = [["start", "resume"], ["stop"], ["restart"], ["pause", "unpause"], ["snapshot"]];
/** Snapshots have buttons of their own. */
const ELSEWHERE: readonly string[] = ["restore"];

export interface Arrangement {
  header: ActionState[];
  menu: ActionState[];
}

export function arranged(actions: readonly ActionState[]): Arrangement {
  const byVerb = new Map(actions.map((action) => [action.verb, action]));
  const header: ActionState[] = [];
  for (const place of IN_HEADER) {
    const known = place.map((verb) => byVerb.get(verb)).filter((action) => action !== undefined);
    const chosen = known.find((action) => action.allowed) ?? known[0];
    if (chosen) header.push(chosen);
  }
  const shown = new Set(header.map((action) => action.verb));
  const twins = new Set(["resume", "unpause"].filter((verb) => !byVerb.get(verb)?.allowed));
  const menu = actions.filter((action) => !shown.has(action.verb) && !twins.has(action.verb) && !ELSEWHERE.includes(action.verb));
  const order = Object.keys(VERBS);
  menu.sort((one, other) => rank(order, one.verb) - rank(order, other.verb));
  return { header, menu: menu.filter((action) => action.verb !== opposite(action.verb, byVerb)) };
}

function rank(order: readonly string[], verb: string): number {
  const index = order.indexOf(verb);
  return index < 0 ? order.length : index;
}

/** The verb itself if its opposite is the one that makes sense now: a protected machine is not protected again. */
function opposite(verb: string, actions: ReadonlyMap<string, ActionState>): string {
  const other = { protect: "unprotect", unprotect: "protect", suspend: "resume" }[verb];
  return other && !actions.get(verb)?.allowed && actions.get(other)?.allowed ? verb : "";
}

export function wordsOf(verb: string): VerbWords {
  return VERBS[verb] ?? { label: verb.charAt(0).toUpperCase() + verb.slice(1), icon: "more", ...NO_QUESTION };
}
