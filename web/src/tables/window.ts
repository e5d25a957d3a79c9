/** The rows of a long table that are worth drawing. */
export interface Slice {
  first: number;
  /** one behind the last */
  end: number;
}

const SPARE_ROWS = 3;
/** The view moves in steps of as many pixels, so that not every frame of a scroll draws rows. */
const STEP = 126;

/** The last step before a position. */
export const stepBefore = (top: number): number => Math.floor(top / STEP) * STEP;

/** The rows in view from a step to the next, and a few around them. */
export function sliceOf(view: { top: number; height: number; rowHeight: number; count: number }): Slice {
  const { top, height, rowHeight, count } = view;
  const first = Math.max(0, Math.floor(stepBefore(top) / rowHeight) - SPARE_ROWS);
  const end = Math.min(count, Math.ceil((stepBefore(top) + STEP + height) / rowHeight) + SPARE_ROWS);
  return { first: Math.min(first, count), end: Math.max(end, Math.min(first, count)) };
}

/** The most rows that a slice of a height has. */
export const mostRows = (height: number, rowHeight: number): number => Math.ceil((STEP + height) / rowHeight) + 2 * SPARE_ROWS + 1;

/** How far to scroll so that a row is in view below the head; the present position if it is. */
export function scrollFor(index: number, view: { top: number; height: number; rowHeight: number }): number {
  const { top, height, rowHeight } = view;
  const start = index * rowHeight;
  if (start < top) return start;
  if (start + rowHeight > top + height) return start + rowHeight - height;
  return top;
}
