import { useRef } from "preact/hooks";

export interface Tab {
  id: string;
  text: string;
  /** a number beside the text, such as of pending changes */
  count?: number;
}

interface TabsProps {
  label: string;
  tabs: readonly Tab[];
  chosen: string;
  choose: (id: string) => void;
}

/** A row of tabs. Arrows, Home and End choose. The panel has `role="tabpanel"` and `aria-labelledby={tabId(id)}`. */
export function Tabs({ label, tabs, chosen, choose }: TabsProps) {
  const row = useRef<HTMLDivElement>(null);
  const keys = (event: KeyboardEvent): void => {
    const at = tabs.findIndex((tab) => tab.id === chosen);
    const steps: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = tabs[(step + tabs.length) % tabs.length];
    if (!next) return;
    choose(next.id);
    row.current?.querySelector<HTMLElement>(`#${CSS.escape(tabId(next.id))}`)?.focus();
  };
  return (
    <div ref={row} class="tabs" role="tablist" aria-label={label} onKeyDown={keys}>
      {tabs.map(({ id, text, count }) => (
        <button
          key={id}
          id={tabId(id)}
          type="button"
          role="tab"
          class="tab"
          aria-selected={id === chosen}
          tabIndex={id === chosen ? 0 : -1}
          onClick={() => choose(id)}
        >
          {text}
          {count ? <span class="count">{count}</span> : null}
        </button>
      ))}
    </div>
  );
}

export const tabId = (id: string): string => `tab-${id}`;
