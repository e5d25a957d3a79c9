import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icon";

export interface MenuItem {
  text: string;
  icon?: IconName;
  /** why the item does nothing now; empty if it does */
  reason?: string;
  danger?: boolean;
  act: () => void;
}

interface MenuProps {
  label: string;
  /** made when the menu opens */
  items: () => MenuItem[];
  children?: ComponentChildren;
  button?: string;
  tab?: 0 | -1;
}

/** A button with a menu. Arrows, Home, End and letters move; Escape closes. */
export function Menu({ label, items, children, button = "button icon-only", tab = 0 }: MenuProps) {
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const id = useId();
  return (
    <span class="menu">
      <button
        ref={trigger}
        type="button"
        class={button}
        tabIndex={tab}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        aria-label={children ? undefined : label}
        title={children ? undefined : label}
        onClick={() => setOpen(!open)}
      >
        {children ?? <Icon name="more" />}
      </button>
      {open && <MenuList id={id} label={label} items={items()} trigger={trigger.current} close={() => setOpen(false)} />}
    </span>
  );
}

interface MenuListProps {
  id: string;
  label: string;
  items: MenuItem[];
  /** the button that opened the menu */
  trigger: HTMLButtonElement | null;
  close: () => void;
}

/** An open menu beside its button. */
export function MenuList({ id, label, items, trigger, close }: MenuListProps) {
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    list.current?.showPopover();
    place(trigger, list.current);
    focusItem(list.current, 0);
  }, []);
  // What scrolls takes the button along, and the menu would stay.
  useEffect(() => {
    const scrolled = (event: Event): void => {
      if (event.target !== list.current && event.target instanceof Node && event.target.contains(trigger)) close();
    };
    addEventListener("scroll", scrolled, true);
    return () => removeEventListener("scroll", scrolled, true);
  }, [trigger]);
  const leave = (): void => {
    close();
    trigger?.focus();
  };
  return (
    <div
      ref={list}
      id={id}
      class="menu-list"
      role="menu"
      aria-label={label}
      popover="auto"
      onToggle={(event) => {
        if ((event as unknown as { newState: string }).newState === "closed") close();
      }}
      onKeyDown={(event) => move(event, list.current, leave)}
    >
      {items.map((item) => (
        <button
          key={item.text}
          type="button"
          role="menuitem"
          tabIndex={-1}
          class={`menu-item${item.danger ? " danger" : ""}`}
          aria-disabled={item.reason ? true : undefined}
          title={item.reason || undefined}
          onClick={() => {
            if (item.reason) return;
            leave();
            item.act();
          }}
        >
          {item.icon ? <Icon name={item.icon} /> : <span class="icon" />}
          <span>
            {item.text}
            {item.reason && <span class="menu-reason">{item.reason}</span>}
          </span>
        </button>
      ))}
    </div>
  );
}

// Beside the button, and inside of the window.
function place(button: HTMLElement | null, list: HTMLElement | null): void {
  if (!button || !list) return;
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = list;
  const left = Math.max(8, Math.min(at.left, innerWidth - width - 8));
  const below = at.bottom + 4;
  const top = below + height > innerHeight - 8 ? Math.max(8, at.top - height - 4) : below;
  list.style.left = `${left}px`;
  list.style.top = `${top}px`;
}

const itemsOf = (list: HTMLElement | null): HTMLElement[] => [...(list?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? [])];

function focusItem(list: HTMLElement | null, index: number): void {
  const all = itemsOf(list);
  all[(index + all.length) % all.length]?.focus();
}

function move(event: KeyboardEvent, list: HTMLElement | null, close: () => void): void {
  const all = itemsOf(list);
  const at = all.findIndex((each) => each === document.activeElement);
  const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 };
  const next = steps[event.key];
  if (next !== undefined) {
    event.preventDefault();
    focusItem(list, next);
  } else if (event.key === "Escape" || event.key === "Tab") {
    event.preventDefault();
    close();
  } else if (event.key.length === 1) {
    const letter = event.key.toLowerCase();
    const found = [...all.slice(at + 1), ...all].find((each) => each.textContent?.trim().toLowerCase().startsWith(letter));
    found?.focus();
  }
}
