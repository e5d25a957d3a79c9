/** The rows of a long table that are worth drawing. */
export interface Slice {
  first: number;
  /** one behind the last */
  end: number;
}

const SPARE_ROWS = 8;

/** The rows in view, and a few around them. */
export function sliceOf(view: { top: number; height: number; rowHeight: number; count: number }): Slice {
  const { top, height, rowHeight, count } = view;
  const first = Math.max(0, Math.floor(top / rowHeight) - SPARE_ROWS);
  const end = Math.min(count, Math.ceil((top + height) / rowHeight) + SPARE_ROWS);
  return { first: Math.min(first, count), end: Math.max(end, Math.min(first, count)) };
}

/** How far to scroll so that a row is in view below the head; the present position if it is. */
export function scrollFor(index: number, view: { top: number; height: number; rowHeight: number }): number {
  const { top, height, rowHeight } = view;
  const start = index * rowHeight;
  if (start < top) return start;
  if (start + rowHeight > top + height) return start + rowHeight - height;
  return top;
}
