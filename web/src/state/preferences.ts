import { type Signal, effect, signal } from "@preact/signals";

const PREFIX = "paddock.";

/** A signal that this browser remembers. A value that cannot be read counts as none. */
export function remembered<T>(name: string, initial: T, fits: (value: unknown) => value is T): Signal<T> {
  const key = PREFIX + name;
  const value = signal<T>(read(key, initial, fits));
  let first = true;
  effect(() => {
    const text = JSON.stringify(value.value);
    if (first) first = false;
    else write(key, text);
  });
  return value;
}

function read<T>(key: string, initial: T, fits: (value: unknown) => value is T): T {
  try {
    const text = localStorage.getItem(key);
    const value: unknown = text === null ? initial : JSON.parse(text);
    return fits(value) ? value : initial;
  } catch {
    return initial;
  }
}

// A browser that stores nothing forgets when the page closes, and no more than that.
function write(key: string, text: string): void {
  try {
    localStorage.setItem(key, text);
  } catch {
    // nothing else depends on it
  }
}

export const isText = (value: unknown): value is string => typeof value === "string";
export const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText);
export const isFlag = (value: unknown): value is boolean => typeof value === "boolean";
export const oneOf =
  <T extends string>(...values: T[]) =>
  (value: unknown): value is T =>
    values.includes(value as T);

export type Theme = "system" | "light" | "dark";
export const theme = remembered<Theme>("theme", "system", oneOf("system", "light", "dark"));

/** The namespace that lists show; empty is all of them. */
export const namespace = remembered<string>("namespace", "", isText);

/** Rows of tables with less space around them. */
export const dense = remembered<boolean>("dense", false, isFlag);
