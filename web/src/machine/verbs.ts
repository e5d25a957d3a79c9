/** The verbs of a machine's page: their words, and their places in the header. */

import { sentence } from "../format/words";
import type { ActionState } from "../generated/answers";
import { VERBS, type Verb } from "../machines/verbs";

/** Verbs of one machine that the list does not offer. */
const MORE: readonly Verb[] = [
  { verb: "restore", text: "Restore", past: "Restored", icon: "restart", asks: true, danger: true },
  { verb: "clone", text: "Clone", past: "Cloned", icon: "copy" },
];

export function verbOf(verb: string): Verb {
  const known = [...VERBS, ...MORE].find((each) => each.verb === verb);
  return known ?? { verb, text: verb.charAt(0).toUpperCase() + verb.slice(1), past: `Did “${verb}” for`, icon: "more" };
}

/** Why a verb is not possible now, as a sentence; empty if it is. */
export function reasonOf(action: ActionState): string {
  if (action.allowed) return "";
  return sentence(action.reason || "it is not possible now");
}

/** Beside each other in the header; of two verbs in one place, the one that is allowed stands there. */
const IN_HEADER: readonly (readonly string[])[] = [["start", "resume"], ["stop"], ["restart"], ["pause", "unpause"], ["snapshot"]];
/** Snapshots have buttons of their own. */
const ELSEWHERE: ReadonlySet<string> = new Set(["restore"]);
/** Only one of each pair makes sense in a state; the menu hides the other one. */
const PAIRS: readonly (readonly [string, string])[] = [
  ["protect", "unprotect"],
  ["suspend", "resume"],
  ["pause", "unpause"],
];
const MENU_ORDER: readonly string[] = ["suspend", "resume", "clone", "protect", "unprotect", "reset", "delete"];

export interface Arrangement {
  header: ActionState[];
  menu: ActionState[];
}

export function arranged(actions: readonly ActionState[]): Arrangement {
  const byVerb = new Map(actions.map((action) => [action.verb, action]));
  const header = IN_HEADER.flatMap((verbs) => {
    const known = verbs.map((verb) => byVerb.get(verb)).filter((action) => action !== undefined);
    const chosen = known.find((action) => action.allowed) ?? known[0];
    return chosen ? [chosen] : [];
  });
  const hidden = new Set([...ELSEWHERE, ...header.map((action) => action.verb), ...PAIRS.flatMap((pair) => needless(pair, byVerb))]);
  const menu = actions.filter((action) => !hidden.has(action.verb));
  return { header, menu: menu.sort((one, other) => rank(one.verb) - rank(other.verb)) };
}

function needless([one, other]: readonly [string, string], actions: ReadonlyMap<string, ActionState>): string[] {
  if (actions.get(one)?.allowed === actions.get(other)?.allowed) return actions.get(one)?.allowed ? [] : [other];
  return [actions.get(one)?.allowed ? other : one];
}

function rank(verb: string): number {
  const index = MENU_ORDER.indexOf(verb);
  // Verbs that the page does not know stand before those that destroy something.
  return index < 0 ? MENU_ORDER.indexOf("reset") - 0.5 : index;
}
