import { go, machineLink } from "../app/routes";
import type { MachineRow } from "../generated/answers";
import { Menu, type MenuItem } from "../parts/menu";
import type { Tab } from "../tables/columns";
import { perform } from "./perform";
import { VERBS, refusalOf } from "./verbs";

/** Verbs that the menu shows only where they are possible, because another one stands for the opposite state. */
const PAIRS = new Set(["unpause", "suspend", "resume", "unprotect", "pause", "protect"]);

/** The actions of one machine. What is not possible now says why. */
export function RowMenu({ row, tab }: { row: MachineRow; tab: Tab }) {
  const items = (): MenuItem[] => [
    { text: "Open", icon: "arrow", act: () => go(machineLink(row.id)) },
    { text: "Console", icon: "terminal", act: () => go(machineLink(row.id, "console")) },
    ...VERBS.filter(({ verb }) => row.verbs.includes(verb) || !PAIRS.has(verb)).map((verb) => ({
      text: verb.text,
      icon: verb.icon,
      reason: refusalOf(verb.verb, row),
      danger: verb.danger ?? false,
      act: () => perform(verb, [row]),
    })),
  ];
  return <Menu label={`Actions of ${row.name}`} items={items} tab={tab} button="button icon-only small" />;
}
