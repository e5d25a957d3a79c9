import type { Signal } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";
import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/icon";
import { dense } from "../state/preferences";
import { type Column, type Tab, fitting, leastWidthOf } from "./columns";
import { type Order, ordered } from "./order";
import { mostRows, scrollFor, sliceOf, stepBefore } from "./window";

interface TableProps<R extends { id: string }> {
  label: string;
  columns: readonly Column<R>[];
  /** a person chose the columns: all of them stay */
  chosen?: boolean;
  rows: readonly R[];
  order: Signal<Order>;
  /** ids of the selected rows; without it rows cannot be selected */
  selection?: Signal<ReadonlySet<string>>;
  /** what Enter and a double click do */
  open?: (row: R) => void;
  /** a row where there is no room for columns */
  narrow: (row: R, tab: Tab) => ComponentChildren;
  nameOf: (row: R) => string;
}

const ROW_HEIGHT = 42;
const DENSE_HEIGHT = 34;
const NARROW_HEIGHT = 68;
const HEAD_HEIGHT = 36;
const NARROW_WIDTH = 640;
const SELECT_WIDTH = 38;
const PADDING = 24;

/**
 * A table of any number of rows, of which it draws those in view. An element of a row that leaves the view shows one that comes into
 * it: most of the cost of new elements is their style and layout. Keys: arrows, Home, End, Page Up and Down, Enter, Space,
 * Control A.
 */
export function Table<R extends { id: string }>({ label, columns: wanted, chosen = false, rows, order, selection, open, narrow, nameOf }: TableProps<R>) {
  const box = useRef<HTMLDivElement>(null);
  const view = useView(box);
  const [active, setActive] = useState(0);
  const id = useId();
  // Without a width nothing is drawn: with all columns in every row, it would be drawn twice.
  const known = view.width > 0;
  const isNarrow = known && view.width < NARROW_WIDTH;
  const rowHeight = isNarrow ? NARROW_HEIGHT : dense.value ? DENSE_HEIGHT : ROW_HEIGHT;
  const head = isNarrow ? 0 : HEAD_HEIGHT;
  const side = (selection ? SELECT_WIDTH : 0) + PADDING;
  const columns = useMemo(() => (!known ? [] : chosen ? wanted : fitting(wanted, view.width - side)), [wanted, chosen, known, view.width, side]);
  const { column, down } = order.value;
  const sorted = useMemo(() => {
    const by = wanted.find((each) => each.id === column) ?? wanted[0];
    return by ? ordered(rows, by.sort, down) : [...rows];
  }, [rows, wanted, column, down]);
  const { first, end } = sliceOf({ top: view.top, height: view.height, rowHeight, count: known ? sorted.length : 0 });
  const at = Math.min(active, sorted.length - 1);
  const tracks = [selection ? "26px" : "", ...columns.map((each) => each.width)].filter(Boolean).join(" ");
  // All rows are as wide as the head, whatever is in them.
  const least = useMemo<Style>(() => (isNarrow ? {} : { minWidth: `${leastWidthOf(columns) + side}px`, gridTemplateColumns: tracks }), [isNarrow, columns, side, tracks]);
  const slots = mostRows(view.height, rowHeight);
  const kept = useRef(new Map<number, KeptRow>());
  const rowsInView = keptRows(kept, sorted.slice(first, end), slots, (row, offset) => {
    const index = first + offset;
    return { row, index, id: `${id}-${index}`, tab: index === at ? 0 : -1, selected: selection?.value.has(row.id) ?? false, columns, least, rowHeight, isNarrow };
  }, (props) => <Row key={props.index % slots} {...props} selection={selection} narrow={narrow} name={nameOf(props.row)} open={open} activate={setActive} />);
  const body = useRef<HTMLDivElement>(null);
  const focused = useFocusedRow(body, box);

  const move = (index: number): void => {
    const next = Math.max(0, Math.min(sorted.length - 1, index));
    setActive(next);
    if (box.current) box.current.scrollTop = scrollFor(next, { top: box.current.scrollTop, height: view.height - head, rowHeight });
  };
  const keys = (event: KeyboardEvent): void => {
    // A button or a link inside of a row has Enter and Space for itself.
    const own = event.target === box.current;
    const page = Math.max(1, Math.floor((view.height - head) / rowHeight) - 1);
    const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: sorted.length - 1 };
    const step = steps[event.key];
    const row = sorted[at];
    if (step !== undefined) {
      move(step);
      if (!own) box.current?.focus();
    } else if (own && event.key === "Enter" && row && open) open(row);
    else if (own && event.key === " " && row && selection) toggle(selection, row.id);
    else if (own && selection && event.key === "a" && (event.ctrlKey || event.metaKey)) selection.value = new Set(sorted.map((each) => each.id));
    else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) {
      box.current?.querySelector<HTMLElement>(`#${CSS.escape(`${id}-${at}`)} [aria-haspopup]`)?.click();
    } else return;
    event.preventDefault();
  };

  return (
    <div
      ref={box}
      class={`table${isNarrow ? " narrow" : ""}${dense.value ? " dense" : ""}`}
      role="grid"
      aria-label={label}
      aria-rowcount={sorted.length + 1}
      aria-multiselectable={selection ? true : undefined}
      aria-activedescendant={sorted.length ? `${id}-${at}` : undefined}
      tabIndex={0}
      onKeyDown={keys}
    >
      <div class="table-head" role="row" aria-rowindex={1} style={least}>
        {selection && <SelectAll rows={sorted} selection={selection} />}
        {columns.map((each) => (
          <Heading key={each.id} column={each} order={order} />
        ))}
      </div>
      <div
        ref={body}
        class="table-body"
        role="rowgroup"
        // The elements are in the order of their slots, and the rows that they show are not.
        aria-owns={first ? Array.from({ length: end - first }, (_, offset) => `${id}-${first + offset}`).join(" ") : undefined}
        style={{ height: `${sorted.length * rowHeight}px` }}
        onFocusIn={focused}
      >
        {rowsInView}
      </div>
    </div>
  );
}

type Style = Record<string, string>;
type Ref = { current: HTMLDivElement | null };

function toggle(selection: Signal<ReadonlySet<string>>, id: string): void {
  const next = new Set(selection.value);
  if (!next.delete(id)) next.add(id);
  selection.value = next;
}

/** What a row looks like depends on these, and on the signals that its cells read. */
interface RowProps<R> {
  row: R;
  index: number;
  id: string;
  tab: Tab;
  selected: boolean;
  columns: readonly Column<R>[];
  least: Style;
  rowHeight: number;
  isNarrow: boolean;
}

interface KeptRow {
  props: { index: number };
  node: VNode;
}

/** Draw rows into slots, and take those again whose properties are the same: a table that scrolls draws only what comes into view. */
function keptRows<R extends { id: string }>(
  kept: { current: Map<number, KeptRow> },
  rows: readonly R[],
  slots: number,
  propsOf: (row: R, offset: number) => RowProps<R>,
  draw: (props: RowProps<R>) => VNode,
): VNode[] {
  const next = new Map<number, KeptRow>();
  for (const [offset, row] of rows.entries()) {
    const props = propsOf(row, offset);
    const slot = props.index % slots;
    const before = kept.current.get(slot);
    next.set(slot, before && isSame(before.props, props) ? before : { props, node: draw(props) });
  }
  kept.current = next;
  return [...next].sort(([one], [other]) => one - other).map(([, { node }]) => node);
}

/** What has the focus in a row keeps it only as long as its element shows that row: Enter on a button must not reach another row. */
function useFocusedRow(body: Ref, box: Ref): (event: FocusEvent) => void {
  const row = useRef("");
  useLayoutEffect(() => {
    const holder = document.activeElement?.closest<HTMLElement>("[data-id]");
    if (holder && body.current?.contains(holder) && holder.dataset["id"] !== row.current) box.current?.focus({ preventScroll: true });
  });
  return (event) => {
    row.current = (event.target as HTMLElement).closest<HTMLElement>("[data-id]")?.dataset["id"] ?? "";
  };
}

const isSame = (one: object, other: object): boolean => Object.entries(other).every(([name, value]) => (one as Record<string, unknown>)[name] === value);

interface OneRowProps<R> extends RowProps<R> {
  name: string;
  selection: Signal<ReadonlySet<string>> | undefined;
  narrow: (row: R, tab: Tab) => ComponentChildren;
  open: ((row: R) => void) | undefined;
  activate: (index: number) => void;
}

function Row<R extends { id: string }>(props: OneRowProps<R>) {
  const { row, index, id, tab, selected, columns, least, rowHeight, isNarrow, name, selection, narrow, open, activate } = props;
  return (
    <div
      id={id}
      data-id={row.id}
      class={`table-row${selected ? " chosen" : ""}${tab === 0 ? " active" : ""}`}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={selection ? selected : undefined}
      style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px`, ...least }}
      onClick={() => activate(index)}
      onDblClick={() => open?.(row)}
    >
      {selection && (
        <span class="cell select" role="gridcell">
          <input type="checkbox" tabIndex={tab} aria-label={`Select ${name}`} checked={selected} onChange={() => toggle(selection, row.id)} />
        </span>
      )}
      {isNarrow ? (
        <div class="cell narrow-cell" role="gridcell">
          {narrow(row, tab)}
        </div>
      ) : (
        columns.map((each) => (
          <span key={each.id} class={`cell${each.number ? " number" : ""}`} role="gridcell" title={each.hint?.(row) || undefined}>
            {each.cell(row, tab)}
          </span>
        ))
      )}
    </div>
  );
}

function Heading<R>({ column, order }: { column: Column<R>; order: Signal<Order> }) {
  const { value } = order;
  const sorted = value.column === column.id;
  return (
    <span
      class={`cell${column.number ? " number" : ""}`}
      role="columnheader"
      aria-sort={sorted ? (value.down ? "descending" : "ascending") : undefined}
    >
      {column.title ? (
        <button type="button" class="heading" onClick={() => (order.value = { column: column.id, down: sorted && !value.down })}>
          {column.title}
          {sorted && (
            <span class={`heading-arrow${value.down ? " down" : ""}`}>
              <Icon name="chevron" size={12} />
            </span>
          )}
        </button>
      ) : (
        <span class="for-readers">Actions</span>
      )}
    </span>
  );
}

function SelectAll<R extends { id: string }>({ rows, selection }: { rows: readonly R[]; selection: Signal<ReadonlySet<string>> }) {
  const box = useRef<HTMLInputElement>(null);
  const number = rows.reduce((sum, row) => sum + Number(selection.value.has(row.id)), 0);
  useLayoutEffect(() => {
    if (box.current) box.current.indeterminate = number > 0 && number < rows.length;
  });
  return (
    <span class="cell select" role="columnheader">
      <input
        ref={box}
        type="checkbox"
        aria-label="Select all rows"
        checked={number > 0 && number === rows.length}
        onChange={(event) => (selection.value = new Set(event.currentTarget.checked ? rows.map((row) => row.id) : []))}
      />
    </span>
  );
}

/** The part of the table that is in view, to a step of scrolling. */
function useView(box: { current: HTMLDivElement | null }): { top: number; height: number; width: number } {
  const [view, setView] = useState({ top: 0, height: 0, width: 0 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    let frame = 0;
    const read = (): void => {
      frame = 0;
      const next = { top: stepBefore(element.scrollTop), height: element.clientHeight, width: element.clientWidth };
      setView((before) => (before.top === next.top && before.height === next.height && before.width === next.width ? before : next));
    };
    const later = (): void => {
      frame ||= requestAnimationFrame(read);
    };
    const observer = new ResizeObserver(later);
    observer.observe(element);
    element.addEventListener("scroll", later, { passive: true });
    read();
    return () => {
      cancelAnimationFrame(frame);
      observer.disconnect();
      element.removeEventListener("scroll", later);
    };
  }, []);
  return view;
}
