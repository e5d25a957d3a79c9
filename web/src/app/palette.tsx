import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import type { MachineRow } from "../generated/answers";
import { perform } from "../machines/perform";
import { refusalOf } from "../machines/verbs";
import { Icon } from "../parts/icon";
import { rowsOf } from "../state/live";
import { askRights } from "../state/rights";
import { dense, namespace, theme } from "../state/preferences";
import { me } from "../state/session";
import { type Command, choose, named, verbIn } from "./commands";
import { openCreate, openKeyHelp } from "./keys";
import { go, link, machineLink } from "./routes";
import { PLACES } from "./shell";

const MOST = 12;

function fixed(): Command[] {
  const pages = [...PLACES.flatMap((group) => group.places), { page: "settings", text: "Settings", icon: "settings" as const }];
  return [
    { id: "new", text: "New machine", note: "create", icon: "add", act: () => openCreate() },
    ...pages.map(({ page, text, icon }) => ({ id: `page-${page}`, text, note: "page", icon, act: () => go(link(page)) })),
    { id: "dark", text: "Dark colours", note: "theme", icon: "moon", act: () => void (theme.value = "dark") },
    { id: "light", text: "Light colours", note: "theme", icon: "sun", act: () => void (theme.value = "light") },
    { id: "system", text: "Colours of the system", note: "theme", icon: "settings", act: () => void (theme.value = "system") },
    { id: "dense", text: dense.value ? "Comfortable tables" : "Compact tables", note: "density", icon: "columns", act: () => void (dense.value = !dense.value) },
    { id: "keys", text: "Keys", note: "help", icon: "key", act: () => openKeyHelp() },
    { id: "all", text: "All namespaces", note: "namespace", icon: "filter", act: () => void (namespace.value = "") },
    ...(me()?.namespaces ?? []).map(
      (name): Command => ({ id: `namespace-${name}`, text: `Namespace ${name}`, note: "namespace", icon: "filter", act: () => void (namespace.value = name) }),
    ),
  ];
}

/** The machines that a text with a verb means. */
function meant(typed: string): MachineRow[] {
  const found = verbIn(typed);
  return found ? named(rowsOf("machines").value.values(), found.rest).slice(0, MOST) : [];
}

/** What a text offers: actions on machines, pages, and machines. */
export function commandsFor(typed: string): Command[] {
  const machines = rowsOf("machines").value;
  const found = verbIn(typed);
  if (found) {
    return meant(typed).map((row) => ({
      id: `${found.verb.verb}-${row.id}`,
      text: `${found.verb.text} ${row.name}`,
      note: refusalOf(found.verb.verb, row) || `${row.namespace} · ${row.status}`,
      icon: found.verb.icon,
      act: () => !refusalOf(found.verb.verb, row) && perform(found.verb, [row]),
    }));
  }
  const commands = fixed();
  if (typed.trim()) {
    for (const row of machines.values()) {
      commands.push({ id: row.id, text: row.name, note: [row.namespace, row.status, ...row.ips].join(" · "), icon: "machine", act: () => go(machineLink(row.id)) });
    }
  }
  return choose(commands, typed, MOST);
}

/** Search and commands in one line: Control K. */
export function Palette({ close }: { close: () => void }) {
  const typed = useSignal("");
  const at = useSignal(0);
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  useEffect(() => meant(typed.value).forEach((row) => askRights(row.id)), [typed.value]);
  const commands = commandsFor(typed.value);
  const chosen = Math.min(at.value, commands.length - 1);
  const run = (command: Command | undefined): void => {
    if (!command) return;
    close();
    command.act();
  };
  const keys = (event: KeyboardEvent): void => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    const step = steps[event.key];
    if (step && commands.length) {
      event.preventDefault();
      at.value = (chosen + step + commands.length) % commands.length;
      document.getElementById(`${id}-${at.value}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(commands[chosen]);
    }
  };
  return (
    <dialog
      ref={element}
      class="dialog palette"
      aria-label="Search and commands"
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => {
        if (event.target === element.current) close();
      }}
    >
      <div class="palette-input">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={commands.length ? `${id}-${chosen}` : undefined}
          aria-label="Search and commands"
          placeholder="A machine, a page, or an action such as “stop web”"
          autocomplete="off"
          spellcheck={false}
          value={typed.value}
          onInput={(event) => {
            typed.value = event.currentTarget.value;
            at.value = 0;
          }}
          onKeyDown={keys}
        />
        <kbd>Esc</kbd>
      </div>
      <div class="palette-list" id={`${id}-list`} role="listbox" aria-label="Results">
        {commands.map((command, index) => (
          <div
            key={command.id}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            class="palette-item"
            onClick={() => run(command)}
            onMouseMove={() => (at.value = index)}
          >
            <Icon name={command.icon} />
            <span class="palette-text">{command.text}</span>
            <span class="quiet small palette-note">{command.note}</span>
          </div>
        ))}
        {!commands.length && <p class="quiet palette-none">Nothing fits.</p>}
      </div>
    </dialog>
  );
}
