import { signal } from "@preact/signals";
import { problemOf } from "../api/problem";
import { Icon } from "./icon";

interface Toast {
  id: number;
  kind: "good" | "bad";
  text: string;
  why: string;
  fix: string;
}

const SHOWN_MS = 5000;
const toasts = signal<Toast[]>([]);
let count = 0;

function push(toast: Omit<Toast, "id">): number {
  count += 1;
  toasts.value = [...toasts.value.slice(-3), { id: count, ...toast }];
  return count;
}

const dismiss = (id: number): void => void (toasts.value = toasts.value.filter((each) => each.id !== id));

/** Say that something went well. It goes away by itself. */
export function tell(text: string): void {
  const id = push({ kind: "good", text, why: "", fix: "" });
  setTimeout(() => dismiss(id), SHOWN_MS);
}

/** Say that something failed. It stays until a person closes it. */
export function complain(thrown: unknown): void {
  const { message, why, fix } = problemOf(thrown);
  push({ kind: "bad", text: message, why, fix });
}

/** Copy a text, and say so. */
export async function copy(text: string, what = "Copied"): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    tell(what);
  } catch {
    complain(new Error("The browser did not copy the text; select it and copy it by hand"));
  }
}

export function Toasts() {
  return (
    <div class="toasts" role="region" aria-label="Notifications">
      <div aria-live="polite">
        {toasts.value.map((toast) => (
          <div key={toast.id} class={`toast ${toast.kind}`} role={toast.kind === "bad" ? "alert" : undefined}>
            <Icon name={toast.kind === "bad" ? "warning" : "check"} />
            <div class="toast-text">
              <p>{toast.text}</p>
              {toast.why && <p class="quiet">{toast.why}</p>}
              {toast.fix && <p>{toast.fix}</p>}
            </div>
            <button type="button" class="button icon-only" aria-label="Close notification" onClick={() => dismiss(toast.id)}>
              <Icon name="close" />
            </button>
          </div>
        ))}
      </div>
    </div>
  );
}
