const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The time since an instant in the short form of kubectl: `45s`, `12m`, `5h`, `3d4h`, `41d`. */
export function age(time: string, now: number): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  if (Number.isNaN(seconds)) return "–";
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  if (seconds < 3 * HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)}h`;
  const days = Math.floor(seconds / DAY);
  const hours = Math.floor((seconds % DAY) / HOUR);
  return days < 8 && hours ? `${days}d${hours}h` : `${days}d`;
}

// The browser's language; a format takes longer to make than to use.
const WORDS = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** An instant in the words of the browser's language. */
export function instant(time: string): string {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? "" : WORDS.format(at);
}
