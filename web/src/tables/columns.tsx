import type { ComponentChildren } from "preact";
import { Icon } from "../parts/icon";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { SortValue } from "./order";

/** `tab` is 0 in the row that the keyboard is on and -1 in others: controls take it as their `tabIndex`. */
export type Tab = 0 | -1;

export interface Column<R> {
  id: string;
  title: string;
  /** a track of CSS grid */
  width: string;
  sort: (row: R) => SortValue;
  /**
   * What the cell shows. It has no component with a state: the element of a row that leaves the view shows another one. A function
   * that is called costs less than a component, and a row is drawn anew in any case when one of its signals changes.
   */
  cell: (row: R, tab: Tab) => ComponentChildren;
  /** the whole text, for the pointer */
  hint?: (row: R) => string;
  number?: boolean;
  /** cannot be hidden */
  always?: boolean;
  /** hidden until a person asks for it */
  extra?: boolean;
  /** goes where there is no room, those with the highest number first, unless a person chose the columns */
  drop?: number;
}

const COLUMN_GAP = 12;

/** The least width of a track, such as 120 for `minmax(120px, 1fr)`. */
export const leastWidth = (track: string): number => Number(/(\d+)px/.exec(track)?.[1] ?? 0);

/** The least width of columns with the gaps between them. */
export function leastWidthOf<R>(columns: readonly Column<R>[]): number {
  return columns.reduce((sum, column) => sum + leastWidth(column.width) + COLUMN_GAP, 0);
}

/** The columns for which there is room. Without room even for those that stay, the table scrolls. */
export function fitting<R>(columns: readonly Column<R>[], width: number): Column<R>[] {
  const kept = [...columns];
  while (width > 0 && leastWidthOf(kept) > width) {
    const last = kept.reduce<Column<R> | null>((found, each) => (each.drop && each.drop > (found?.drop ?? 0) ? each : found), null);
    if (!last) break;
    kept.splice(kept.indexOf(last), 1);
  }
  return kept;
}

/** The columns that a person sees. `chosen` is null as long as they made no choice. */
export function visible<R>(columns: readonly Column<R>[], chosen: readonly string[] | null): Column<R>[] {
  return columns.filter((column) => column.always || (chosen ? chosen.includes(column.id) : !column.extra));
}

interface ChooserProps<R> {
  columns: readonly Column<R>[];
  chosen: readonly string[] | null;
  choose: (ids: string[] | null) => void;
}

/** A button with a list of columns to show. */
export function ColumnChooser<R>({ columns, chosen, choose }: ChooserProps<R>) {
  const [open, setOpen] = useState(false);
  const panel = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    if (!open || !panel.current || !button.current) return;
    panel.current.showPopover();
    const { bottom, right } = button.current.getBoundingClientRect();
    panel.current.style.top = `${bottom + 4}px`;
    panel.current.style.left = `${Math.max(8, right - panel.current.offsetWidth)}px`;
    panel.current.querySelector("input")?.focus();
  }, [open]);
  const shown = visible(columns, chosen).map((column) => column.id);
  return (
    <span class="menu">
      <button ref={button} type="button" class="button" aria-label="Columns" aria-expanded={open} aria-controls={open ? id : undefined} onClick={() => setOpen(!open)}>
        <Icon name="columns" />
        <span class="wide-only">Columns</span>
      </button>
      {open && (
        <div
          ref={panel}
          id={id}
          class="menu-list menu-panel"
          popover="auto"
          role="group"
          aria-label="Columns"
          onToggle={(event) => {
            if ((event as unknown as { newState: string }).newState === "closed") setOpen(false);
          }}
        >
          {columns
            .filter((column) => !column.always)
            .map((column) => (
              <label key={column.id} class="check">
                <input
                  type="checkbox"
                  checked={shown.includes(column.id)}
                  onChange={(event) => choose(event.currentTarget.checked ? [...shown, column.id] : shown.filter((each) => each !== column.id))}
                />
                <span>{column.title}</span>
              </label>
            ))}
          <button type="button" class="button small" disabled={!chosen} onClick={() => choose(null)}>
            Default columns
          </button>
        </div>
      )}
    </span>
  );
}
