import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Icon } from "./icon";

interface Shown {
  id: number;
  render: (close: () => void) => ComponentChildren;
}

const shown = signal<Shown[]>([]);
let count = 0;

/** Show a dialog. `render` returns a `Dialog` and gets the function that closes it. */
export function show(render: (close: () => void) => ComponentChildren): void {
  count += 1;
  shown.value = [...shown.value, { id: count, render }];
}

const hide = (id: number): void => void (shown.value = shown.value.filter((each) => each.id !== id));

/** Close all dialogs, because the page below them is another one. */
export const hideAll = (): void => void (shown.value = []);

/** Where all dialogs are drawn; once in the shell. */
export function Dialogs() {
  return (
    <>
      {shown.value.map(({ id, render }) => (
        <Shown key={id} render={() => render(() => hide(id))} />
      ))}
    </>
  );
}

// A component of its own, so that signals that a dialog reads draw the dialog and nothing else.
const Shown = ({ render }: { render: () => ComponentChildren }) => <>{render()}</>;

interface DialogProps {
  title: string;
  close: () => void;
  children: ComponentChildren;
  footer?: ComponentChildren;
  wide?: boolean;
}

/** A modal dialog: the browser keeps the focus inside, Escape closes it, and the focus returns where it was. `data-focus` marks who has it first. */
export function Dialog({ title, close, children, footer, wide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    // Readers begin with the title, unless a control inside is to have the focus.
    (element.current?.querySelector<HTMLElement>("[data-focus]") ?? element.current?.querySelector("h2"))?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={`dialog${wide ? " wide" : ""}`}
      aria-labelledby={heading}
      onClose={close}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <header class="dialog-head">
        <h2 id={heading} tabIndex={-1}>
          {title}
        </h2>
        <button type="button" class="button icon-only" aria-label="Close" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <div class="dialog-body">{children}</div>
      {footer && <footer class="dialog-foot">{footer}</footer>}
    </dialog>
  );
}

interface Question {
  title: string;
  text: ComponentChildren;
  /** what the button says, such as “Delete 3 machines” */
  verb: string;
  danger?: boolean;
  act: () => void | Promise<void>;
}

/** Ask before something that cannot be undone. */
export function ask({ title, text, verb, danger = false, act }: Question): void {
  show((close) => (
    <Dialog
      title={title}
      close={close}
      footer={
        <>
          <button type="button" class="button" onClick={close} data-focus={danger || undefined}>
            Cancel
          </button>
          <button
            type="button"
            class={`button ${danger ? "danger" : "primary"}`}
            data-focus={!danger || undefined}
            onClick={() => {
              close();
              void act();
            }}
          >
            {verb}
          </button>
        </>
      }
    >
      <div class="prose">{text}</div>
    </Dialog>
  ));
}
