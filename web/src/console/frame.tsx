import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { MachineRow } from "../generated/answers";
import { Dialog, show } from "../parts/dialog";
import { several } from "../format/amounts";
import { Icon } from "../parts/icon";
import type { LinkState } from "./link";
import { ConsoleLink, type Channel } from "./socket";
import { detach, toggleFullScreen } from "./window";

/** Keeps a connection to the machine for as long as the component lives, and hurries when the machine begins to run. */
export function useLink(address: string, row: MachineRow, onAttempt: (channel: Channel) => void): { state: LinkState | null; link: ConsoleLink | null } {
  const [state, setState] = useState<LinkState | null>(null);
  const link = useRef<ConsoleLink | null>(null);
  const attempt = useRef(onAttempt);
  attempt.current = onAttempt;
  useEffect(() => {
    const made = new ConsoleLink({ address, onState: setState, onAttempt: (channel) => attempt.current(channel) });
    link.current = made;
    made.start();
    return () => made.stop();
  }, [address]);
  useEffect(() => {
    if (row.state === "good") link.current?.resume();
  }, [row.status, row.state]);
  return { state, link: link.current };
}

interface FrameProps {
  tab: "console" | "screen";
  label: string;
  row: MachineRow;
  place: string;
  detached: boolean;
  state: LinkState | null;
  tools: ComponentChildren;
  hint: ComponentChildren;
  children: ComponentChildren;
  connect: () => void;
  disconnect: () => void;
  /** the console goes to a window of its own */
  leave: () => void;
  onResize?: () => void;
}

/** A console with its state, its tools, and the way to a window of its own. */
export function Frame({ tab, label, row, place, detached, state, tools, hint, children, connect, disconnect, leave, onResize }: FrameProps) {
  const frame = useRef<HTMLElement>(null);
  const [full, setFull] = useState(false);
  useEffect(() => {
    const changed = (): void => {
      setFull(document.fullscreenElement === frame.current && frame.current !== null);
      onResize?.();
    };
    document.addEventListener("fullscreenchange", changed);
    return () => document.removeEventListener("fullscreenchange", changed);
  }, []);
  const phase = state?.phase ?? "connecting";
  // A machine has one console and one screen at a time. The browser may have refused the window.
  const leaveFor = (opened: boolean): void => {
    if (opened) leave();
  };
  return (
    <section ref={frame} class={`console-frame${detached ? " detached" : ""}`} aria-label={`${label} of ${row.name}`}>
      <div class="console-bar" role="group" aria-label={`Tools of the ${label.toLowerCase()}`}>
        <p class="console-state" role="status">
          <span class="console-lamp" data-phase={phase} aria-hidden="true" />
          <span>
            {detached && <b>{row.name} </b>}
            {state?.text ?? "Connecting …"}
          </span>
        </p>
        <div class="console-tools">
          {phase === "closed" || phase === "waiting" ? (
            <button type="button" class="button small" onClick={connect}>
              Connect
            </button>
          ) : (
            <button type="button" class="button small" onClick={disconnect}>
              Disconnect
            </button>
          )}
          {tools}
          <button type="button" class="button small" aria-pressed={full} onClick={() => void toggleFullScreen(frame.current)}>
            Full screen
          </button>
          {!detached && (
            <button type="button" class="button small" onClick={() => leaveFor(detach(place, tab))}>
              <Icon name="external" />
              <span>Own window</span>
            </button>
          )}
        </div>
      </div>
      {/* Ctrl+K and the like belong to the guest here. */}
      <div class="console-body" data-keys onKeyDown={(event) => event.stopPropagation()}>
        {children}
      </div>
      <p class="console-hint small">{hint}</p>
    </section>
  );
}

interface PasteProps {
  title: string;
  verb: string;
  note: (text: string) => string;
  send: (text: string) => void;
}

/** Asks for the text first: what a clipboard holds is seen before a guest gets it. */
export function askPaste(props: PasteProps): void {
  show((close) => <PasteDialog {...props} close={close} />);
}

function PasteDialog({ title, verb, note, send, close }: PasteProps & { close: () => void }) {
  const [text, setText] = useState("");
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    // Browsers ask the person before a page reads the clipboard; without leave the field stays empty.
    navigator.clipboard?.readText?.().then(
      (found) => setText((before) => before || found),
      () => {},
    );
    area.current?.focus();
  }, []);
  const lines = text.split("\n").length;
  return (
    <Dialog
      title={title}
      close={close}
      footer={
        <>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button
            type="button"
            class="button primary"
            aria-disabled={text === "" ? true : undefined}
            onClick={() => {
              if (!text) return;
              close();
              send(text);
            }}
          >
            {verb}
          </button>
        </>
      }
    >
      <label class="paste">
        <span>Text for the guest</span>
        <textarea ref={area} class="input mono" rows={8} spellcheck={false} autocomplete="off" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <p class="quiet small" role="status">
        {several(text.length, "character")}, {several(lines, "line")}. {note(text)}
      </p>
    </Dialog>
  );
}
