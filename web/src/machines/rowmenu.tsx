import { signal } from "@preact/signals";
import { go, machineLink } from "../app/routes";
import type { MachineRow } from "../generated/answers";
import { MenuList, type MenuItem } from "../parts/menu";
import { rowsOf } from "../state/live";
import { askRights } from "../state/rights";
import type { Tab } from "../tables/columns";
import { perform } from "./perform";
import { VERBS, refusalOf } from "./verbs";

/** Verbs that the menu shows only where they are possible, because another one stands for the opposite state. */
const PAIRS = new Set(["unpause", "suspend", "resume", "unprotect", "pause", "protect"]);
const LIST = "row-menu";

/** The machine whose menu is open, and the button that opened it. All rows have one menu, because few rows ever need one. */
const opened = signal<{ place: string; trigger: HTMLButtonElement } | null>(null);

/** The button of a machine's menu. */
export function menuButton(row: MachineRow, tab: Tab) {
  const open = opened.value?.place === row.id;
  return (
    <button
      type="button"
      class="button icon-only small more"
      tabIndex={tab}
      aria-haspopup="menu"
      aria-expanded={open}
      aria-controls={open ? LIST : undefined}
      aria-label={`Actions of ${row.name}`}
      title={`Actions of ${row.name}`}
      onClick={(event) => {
        askRights(row.id);
        opened.value = open ? null : { place: row.id, trigger: event.currentTarget };
      }}
    />
  );
}

/** The open menu. What is not possible now says why. */
export function RowMenu() {
  const { value } = opened;
  const row = value && rowsOf("machines").value.get(value.place);
  if (!value || !row) return null;
  return <MenuList key={row.id} id={LIST} label={`Actions of ${row.name}`} items={itemsOf(row)} trigger={value.trigger} close={() => (opened.value = null)} />;
}

function itemsOf(row: MachineRow): MenuItem[] {
  return [
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
}
