/** Drawn on a grid of 16 by 16, as strokes in the colour of the text. */
const SHAPES = {
  add: "M8 3v10M3 8h10",
  arrow: "M6 3.5 10.5 8 6 12.5",
  bolt: "M9 1.5 3.5 9H8l-1 5.5L12.5 7H8z",
  check: "m3 8.5 3.2 3.2L13 4.8",
  chevron: "m4 6 4 4 4-4",
  close: "m4 4 8 8M12 4l-8 8",
  columns: "M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  disk: "M2.5 4.5c0-1.1 2.5-2 5.5-2s5.5.9 5.5 2-2.5 2-5.5 2-5.5-.9-5.5-2zM2.5 4.5v7c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2v-7M2.5 8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2",
  down: "M8 3v10M4 9l4 4 4-4",
  edit: "m3 10.5 7.5-7.5 2.5 2.5L5.5 13H3z",
  event: "M2.5 3.5h11v10h-11zM2.5 6.5h11M5.5 1.5v3M10.5 1.5v3",
  external: "M6.5 3.5h-4v10h10v-4M9.5 2.5h4v4M13 3 7.5 8.5",
  filter: "M2 3.5h12L9.5 9v4.5l-3-1.5V9z",
  host: "M2.5 2.5h11v4.5h-11zM2.5 9h11v4.5h-11zM5 4.8h.01M5 11.2h.01",
  image: "M8 1.8 13.5 5v6L8 14.2 2.5 11V5zM2.7 5.1 8 8.2l5.3-3.1M8 8.2v6",
  info: "M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8zM8 7.2v4M8 4.8h.01",
  key: "M10.5 2a3.5 3.5 0 1 1-2.3 6.1L3.5 12.8H2V11l5.2-4.9A3.5 3.5 0 0 1 10.5 2zM11 5h.01",
  lock: "M3.5 7.5h9v6h-9zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5",
  machine: "M2 3h12v8H2zM5.5 13.5h5M8 11v2.5",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  migration: "M2.5 5.5h10M9.5 2.5l3 3-3 3M13.5 10.5h-10M6.5 7.5l-3 3 3 3",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  network: "M6 2h4v3.5H6zM2 10.5h4V14H2zM10 10.5h4V14h-4zM8 5.5V8M4 10.5V8h8v2.5",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M4.5 2.8v10.4L13 8z",
  pool: "M2.5 2.5h4.5V7H2.5zM9 2.5h4.5V7H9zM2.5 9h4.5v4.5H2.5zM9 9h4.5v4.5H9z",
  provider: "M4.5 12.5a3 3 0 0 1-.3-6 4 4 0 0 1 7.7-.6 3.3 3.3 0 0 1-.4 6.6z",
  restart: "M13 8a5 5 0 1 1-1.5-3.6M13 2.5v3h-3",
  save: "M2.5 2.5h9l2 2v9h-11zM5 2.5v3.5h5V2.5M5 13.5V9h6v4.5",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.4 10.4 14 14",
  settings: "M2.5 4.5h6M11.5 4.5h2M2.5 11.5h2M7.5 11.5h6M10 3v3M6 10v3",
  snapshot: "M2 4.5h3l1-1.5h4l1 1.5h3v8.5H2zM8 6.2a2.3 2.3 0 1 1 0 4.6 2.3 2.3 0 0 1 0-4.6z",
  stop: "M4 4h8v8H4z",
  sun: "M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6zM8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  moon: "M13.2 9.7A5.7 5.7 0 0 1 6.3 2.8a5.7 5.7 0 1 0 6.9 6.9z",
  tag: "M2.5 2.5H8l5.5 5.5-5.5 5.5L2.5 8zM5.3 5.3h.01",
  task: "M2.5 4h1M6 4h7.5M2.5 8h1M6 8h7.5M2.5 12h1M6 12h7.5",
  terminal: "M2 3h12v10H2zM4.5 6l2 2-2 2M8.5 10.5h3",
  trash: "M3 4.5h10M6 4.5v-2h4v2M4.2 4.5l.6 9h6.4l.6-9M6.8 7v4M9.2 7v4",
  warning: "M8 2 14.3 13.3H1.7zM8 6.3v3.4M8 11.5h.01",
} as const;

export type IconName = keyof typeof SHAPES;

/** A picture beside a text, which says the same; the picture alone says nothing to a screen reader. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={SHAPES[name]} />
    </svg>
  );
}
