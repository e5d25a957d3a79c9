import { Icon } from "./icon";
import { copy } from "./toasts";

/** A text that a click copies: an address, a command. */
export function CopyText({ text, label }: { text: string; label?: string }) {
  return (
    <button
      type="button"
      class="copy"
      title={`Copy ${label ?? text}`}
      aria-label={`Copy ${label ?? text}`}
      onClick={(event) => {
        event.stopPropagation();
        void copy(text, `Copied ${label ?? text}`);
      }}
    >
      <span class="mono">{text}</span>
      <Icon name="copy" size={12} />
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
