/** A terminal in an element. What a guest writes becomes cells of text, and never markup, a link or the clipboard. */

import { FitAddon } from "@xterm/addon-fit";
import { Terminal, type ITheme } from "@xterm/xterm";
import { withConstructedSheets } from "./styles";

export interface GuestTerminal {
  write(bytes: Uint8Array): void;
  /** A line of the page's own between the lines of the guest. */
  note(text: string): void;
  paste(text: string): void;
  clear(): void;
  focus(): void;
  fit(): void;
  scale(step: number): void;
  size(): { rows: number; columns: number };
  dispose(): void;
}

export interface TerminalEvents {
  onInput: (bytes: Uint8Array) => void;
  onResize: (rows: number, columns: number) => void;
  /** The person leaves the terminal with Ctrl+F6, because Tab belongs to the guest. */
  onLeave: () => void;
}

/** Dark in both themes: programs of guests choose their colours for a dark terminal. */
const THEME: ITheme = {
  background: "#10151b",
  foreground: "#d6dde6",
  cursor: "#e6edf3",
  cursorAccent: "#10151b",
  selectionBackground: "#2f4a6d",
  black: "#3b4550",
  red: "#ff8f88",
  green: "#7fd08a",
  yellow: "#e2bd63",
  blue: "#80b5ff",
  magenta: "#d3a5ff",
  cyan: "#74d3dc",
  white: "#c6d0da",
  brightBlack: "#8b98a6",
  brightRed: "#ffb0aa",
  brightGreen: "#a4e3ab",
  brightYellow: "#f2d488",
  brightBlue: "#a9ceff",
  brightMagenta: "#e3c4ff",
  brightCyan: "#a0e6ec",
  brightWhite: "#ffffff",
};
const FONT_SIZES = [10, 11, 12, 13, 14, 16, 18, 20, 24] as const;
const SCROLLBACK = 5000;

export function openTerminal(parent: HTMLElement, events: TerminalEvents): GuestTerminal {
  const terminal = new Terminal({
    allowProposedApi: false,
    cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    fontFamily: 'ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", "Liberation Mono", Menlo, Consolas, monospace',
    fontSize: 13,
    lineHeight: 1.15,
    linkHandler: { activate: () => {}, allowNonHttpProtocols: false },
    minimumContrastRatio: 4.5,
    screenReaderMode: false,
    scrollback: SCROLLBACK,
    theme: THEME,
  });
  const fit = new FitAddon();
  const encoder = new TextEncoder();
  terminal.loadAddon(fit);
  withConstructedSheets(() => terminal.open(parent));
  terminal.onData((text) => events.onInput(encoder.encode(text)));
  terminal.onBinary((text) => events.onInput(Uint8Array.from(text, (character) => character.charCodeAt(0))));
  terminal.onResize(({ rows, cols }) => events.onResize(rows, cols));
  terminal.attachCustomKeyEventHandler((event) => keyGoesToGuest(event, events.onLeave));
  const observer = new ResizeObserver(() => fitted(parent, fit));
  observer.observe(parent);
  return {
    write: (bytes) => terminal.write(bytes),
    note: (text) => terminal.write(`\r\n\x1b[0;90m${printable(text)}\x1b[0m\r\n`),
    paste: (text) => terminal.paste(text),
    clear: () => terminal.clear(),
    focus: () => terminal.focus(),
    fit: () => fitted(parent, fit),
    scale: (step) => {
      const index = FONT_SIZES.indexOf(terminal.options.fontSize as (typeof FONT_SIZES)[number]);
      terminal.options.fontSize = FONT_SIZES[Math.max(0, Math.min(FONT_SIZES.length - 1, index + step))] ?? 13;
      fitted(parent, fit);
    },
    size: () => ({ rows: terminal.rows, columns: terminal.cols }),
    dispose: () => {
      observer.disconnect();
      terminal.dispose();
    },
  };
}

function fitted(parent: HTMLElement, fit: FitAddon): void {
  if (parent.clientWidth > 0 && parent.clientHeight > 0) fit.fit();
}

function keyGoesToGuest(event: KeyboardEvent, leave: () => void): boolean {
  if (event.type !== "keydown") return true;
  if (event.key === "F6" && event.ctrlKey) {
    event.preventDefault();
    leave();
    return false;
  }
  // The browser copies and pastes with these; alone, Ctrl+C and Ctrl+V belong to the guest.
  if (event.ctrlKey && event.shiftKey && event.code === "KeyC") {
    event.preventDefault();
    document.execCommand("copy");
    return false;
  }
  return !(event.ctrlKey && event.shiftKey && event.code === "KeyV");
}

/** Without control characters: the text of an error may quote a guest. */
function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, " ");
}
