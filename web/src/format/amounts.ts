const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const STEP = 1024;

/** Bytes with at most three digits: `512 MiB`, `1.5 GiB`. Less than 0 is not known. */
export function bytes(amount: number): string {
  if (amount < 0 || Number.isNaN(amount)) return "–";
  let value = amount;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= STEP;
    unit += 1;
  }
  return `${digits(value)} ${UNITS[unit]}`;
}

/** Bytes a second. */
export const rate = (amount: number): string => (amount < 0 ? "–" : `${bytes(amount)}/s`);

/** Cores with at most two digits behind the point: `0.25`, `4`. */
export function cores(amount: number): string {
  if (amount < 0 || Number.isNaN(amount)) return "–";
  return String(Number(amount.toFixed(amount < 10 ? 2 : 1)));
}

/** A part of one as percent. */
export const percent = (part: number): string => (part < 0 || Number.isNaN(part) ? "–" : `${Math.round(part * 100)}%`);

/** A number of things: `1 machine`, `3 machines`. */
export const several = (number: number, noun: string, plural = `${noun}s`): string => `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;

function digits(value: number): string {
  if (value >= 100 || Number.isInteger(value)) return String(Math.round(value));
  return String(Number(value.toPrecision(value >= 10 ? 3 : 2)));
}
