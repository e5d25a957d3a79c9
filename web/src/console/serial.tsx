import { useEffect, useRef } from "preact/hooks";
import { socketAddress } from "../api/client";
import type { MachineRow } from "../generated/answers";
import { Menu } from "../parts/menu";
import { loadSheet } from "../parts/sheet";
import { tell } from "../parts/toasts";
import terminalSheet from "@xterm/xterm/css/xterm.css?sheet";
import sheet from "./console.css?sheet";
import { askPaste, Frame, useLink } from "./frame";
import type { Channel } from "./socket";
import { type GuestTerminal, openTerminal } from "./terminal";

await Promise.all([loadSheet(terminalSheet), loadSheet(sheet)]);

interface ConsoleProps {
  place: string;
  row: MachineRow;
  detached?: boolean;
}

/** The serial console of a machine. */
export function SerialConsole({ place, row, detached = false }: ConsoleProps) {
  const parent = useRef<HTMLDivElement>(null);
  const leave = useRef<HTMLButtonElement>(null);
  const terminal = useRef<GuestTerminal | null>(null);
  const socket = useRef<WebSocket | null>(null);
  const send = (bytes: Uint8Array): void => {
    if (socket.current?.readyState === WebSocket.OPEN) socket.current.send(bytes as Uint8Array<ArrayBuffer>);
  };
  useEffect(() => {
    if (!parent.current) return;
    const opened = openTerminal(parent.current, { onInput: send, onResize: () => {}, onLeave: () => leave.current?.focus() });
    terminal.current = opened;
    opened.fit();
    opened.focus();
    return () => opened.dispose();
  }, []);
  const attach = (channel: Channel): void => {
    socket.current = channel.socket;
    channel.socket.addEventListener("message", (event: MessageEvent<ArrayBuffer | string>) => terminal.current?.write(bytesOf(event.data)));
  };
  const { state, link } = useLink(socketAddress(`sockets/${place}/console`), row, attach);
  const phase = useRef("");
  useEffect(() => {
    if (state?.phase === "waiting" && phase.current === "open") terminal.current?.note(state.text);
    phase.current = state?.phase ?? "";
  }, [state]);
  return (
    <Frame
      tab="console"
      label="Serial console"
      {...{ place, row, detached, state }}
      connect={() => link?.hurry()}
      disconnect={() => link?.stop()}
      leave={() => link?.move()}
      onResize={() => terminal.current?.fit()}
      hint={
        <>
          <kbd>Ctrl</kbd>+<kbd>F6</kbd> leaves the console. <kbd>Ctrl</kbd>+<kbd>Shift</kbd>+<kbd>C</kbd> copies, <kbd>Ctrl</kbd>+<kbd>Shift</kbd>+<kbd>V</kbd> pastes.
        </>
      }
      tools={
        <>
          <button ref={leave} type="button" class="button small" onClick={() => paste(terminal.current)}>
            Paste
          </button>
          <Menu
            label="More tools of the console"
            button="button small"
            items={() => [
              { text: "Tell the guest the window's size", act: () => tellSize(terminal.current, send) },
              { text: "Larger text", act: () => terminal.current?.scale(1) },
              { text: "Smaller text", act: () => terminal.current?.scale(-1) },
              { text: "Clear what is above", act: () => terminal.current?.clear() },
            ]}
          />
        </>
      }
    >
      <div ref={parent} class="serial" />
    </Frame>
  );
}

function bytesOf(data: ArrayBuffer | string): Uint8Array {
  return typeof data === "string" ? new TextEncoder().encode(data) : new Uint8Array(data);
}

function paste(terminal: GuestTerminal | null): void {
  if (!terminal) return;
  askPaste({
    title: "Paste into the console",
    verb: "Paste",
    note: (text) => (text.trimEnd().includes("\n") ? "Each line runs at once if a shell reads it." : ""),
    send: (text) => {
      terminal.paste(text);
      terminal.focus();
    },
  });
}

/** A serial line cannot carry a size, so the shell of the guest gets a command. */
function tellSize(terminal: GuestTerminal | null, send: (bytes: Uint8Array) => void): void {
  if (!terminal) return;
  const { rows, columns } = terminal.size();
  send(new TextEncoder().encode(`stty rows ${rows} cols ${columns}\r`));
  tell(`Typed the size: ${rows} rows, ${columns} columns`);
  terminal.focus();
}
