import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ActionState } from "../generated/answers";
import { Icon } from "../parts/icon";
import { reasonOf, verbOf } from "./verbs";

interface ActionButtonProps {
  action: ActionState;
  run: () => void;
  small?: boolean;
}

/**
 * A verb as a button. Keyboard and screen reader reach it even where it does nothing, so that its reason can be read:
 * a description for readers, a tip for pointer and focus, which Escape closes.
 */
export function ActionButton({ action, run, small = false }: ActionButtonProps) {
  const id = useId();
  const host = useRef<HTMLSpanElement>(null);
  const tip = useRef<HTMLSpanElement>(null);
  const [shown, setShown] = useState(false);
  const { text, icon, danger } = verbOf(action.verb);
  const reason = reasonOf(action);
  useLayoutEffect(() => {
    if (shown) place(host.current, tip.current);
  }, [shown, reason]);
  return (
    <span
      ref={host}
      class="tip-host"
      onMouseEnter={() => setShown(true)}
      onMouseLeave={() => setShown(false)}
      onFocusIn={() => setShown(true)}
      onFocusOut={() => setShown(false)}
      onKeyDown={(event) => event.key === "Escape" && setShown(false)}
    >
      <button
        type="button"
        class={`button${small ? " small" : ""}${danger ? " danger-quiet" : ""}`}
        aria-disabled={reason ? true : undefined}
        aria-describedby={reason ? id : undefined}
        onClick={() => !reason && run()}
      >
        <Icon name={icon} />
        <span>{text}</span>
      </button>
      {reason && (
        <span ref={tip} class="tip" role="tooltip" id={id} hidden={!shown}>
          {reason}
        </span>
      )}
    </span>
  );
}

/** Below the button, and inside of the window. */
function place(host: HTMLElement | null, tip: HTMLElement | null): void {
  if (!host || !tip) return;
  const at = host.getBoundingClientRect();
  tip.style.top = `${at.bottom + 6}px`;
  tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - tip.offsetWidth - 8))}px`;
}
