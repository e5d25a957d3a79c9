import { VERBS } from "../machines/verbs";
import type { MachineRow } from "../generated/answers";
import type { IconName } from "../parts/icon";

/** A line of the palette. */
export interface Command {
  id: string;
  text: string;
  /** what stands behind the text, in quiet letters */
  note: string;
  icon: IconName;
  act: () => void;
}

/** How well a text fits what a person typed: less is better, -1 is not at all. */
export function fit(text: string, typed: string): number {
  const [hay, needle] = [text.toLowerCase(), typed.trim().toLowerCase()];
  if (!needle) return 0;
  if (hay === needle) return 0;
  if (hay.startsWith(needle)) return 1;
  const words = needle.split(/\s+/);
  if (!words.every((word) => hay.includes(word))) return -1;
  return words.every((word) => new RegExp(`(^|[^a-z0-9])${escaped(word)}`).test(hay)) ? 2 : 3;
}

const escaped = (word: string): string => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** The lines that fit, the best first. Equal ones keep their order. */
export function choose(commands: readonly Command[], typed: string, most: number): Command[] {
  return commands
    .map((command) => ({ command, rank: fit(`${command.text} ${command.note}`, typed) }))
    .filter(({ rank }) => rank >= 0)
    .sort((one, other) => one.rank - other.rank)
    .slice(0, most)
    .map(({ command }) => command);
}

/** `stop web`: a verb and the beginning of a name. Null if the text begins with no verb. */
export function verbIn(typed: string): { verb: (typeof VERBS)[number]; rest: string } | null {
  const [, word = "", rest = ""] = /^(\S+)\s+(.*)$/.exec(typed.trim()) ?? [];
  const verb = VERBS.find((each) => each.verb === word.toLowerCase());
  return verb && rest ? { verb, rest } : null;
}

/** Machines that a verb may mean. */
export const named = (rows: Iterable<MachineRow>, part: string): MachineRow[] => [...rows].filter((row) => fit(row.name, part) >= 0).sort((one, other) => fit(one.name, part) - fit(other.name, part));
