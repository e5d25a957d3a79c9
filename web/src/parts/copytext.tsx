import { Icon } from "./icon";
import { copy } from "./toasts";

/** A text that a click copies: an address, a command. */
export function CopyText({ text, label, tab = 0 }: { text: string; label?: string; tab?: 0 | -1 }) {
  return (
    <button
      type="button"
      class="copy mono"
      tabIndex={tab}
      title={`Copy ${label ?? text}`}
      aria-label={`Copy ${label ?? text}`}
      onClick={(event) => {
        event.stopPropagation();
        void copy(text, `Copied ${label ?? text}`);
      }}
    >
      {text}
    </button>
  );
}

/** A command on a line of its own, with a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <button type="button" class="button icon-only" aria-label={`Copy the command ${text}`} title="Copy" onClick={() => void copy(text, "Copied the command")}>
        <Icon name="copy" />
      </button>
    </div>
  );
}
