import { computed, effect, signal } from "@preact/signals";
import { theme } from "./preferences";

const dark = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;
const systemIsDark = signal(dark?.matches ?? false);
dark?.addEventListener("change", (event) => (systemIsDark.value = event.matches));

/** The colours that are shown now; charts and terminals draw themselves again when it changes. */
export const colours = computed<"light" | "dark">(() => (theme.value === "system" ? (systemIsDark.value ? "dark" : "light") : theme.value));

/** Keep the page's colours in step with the choice. */
export function paint(): void {
  effect(() => {
    document.documentElement.dataset["theme"] = colours.value;
  });
}
