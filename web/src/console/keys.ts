/** Keys for a graphical console: named combinations, and text as key strokes of a US keyboard. */

export interface Stroke {
  /** An X11 keysym. */
  keysym: number;
  /** The physical key, as KeyboardEvent.code names it. QEMU takes it, whatever its own keymap is. */
  code: string;
  shift: boolean;
}

export interface Combination {
  label: string;
  /** Keysym and code of each key, in the order in which they go down. */
  keys: readonly (readonly [number, string])[];
}

const CONTROL = [0xffe3, "ControlLeft"] as const;
const ALT = [0xffe9, "AltLeft"] as const;
const SUPER = [0xffeb, "MetaLeft"] as const;

function functionKey(number: number): readonly [number, string] {
  return [0xffbd + number, `F${number}`];
}

export const COMBINATIONS: readonly Combination[] = [
  { label: "Ctrl+Alt+Del", keys: [CONTROL, ALT, [0xffff, "Delete"]] },
  { label: "Ctrl+Alt+Backspace", keys: [CONTROL, ALT, [0xff08, "Backspace"]] },
  { label: "Ctrl+C", keys: [CONTROL, [0x63, "KeyC"]] },
  { label: "Alt+Tab", keys: [ALT, [0xff09, "Tab"]] },
  { label: "Alt+F4", keys: [ALT, functionKey(4)] },
  { label: "Super", keys: [SUPER] },
  { label: "Esc", keys: [[0xff1b, "Escape"]] },
  { label: "Tab", keys: [[0xff09, "Tab"]] },
  { label: "Print Screen", keys: [[0xff61, "PrintScreen"]] },
  { label: "SysRq+B", keys: [ALT, [0xff61, "PrintScreen"], [0x62, "KeyB"]] },
  ...[1, 2, 3, 4, 5, 6, 7].map((number) => ({ label: `Ctrl+Alt+F${number}`, keys: [CONTROL, ALT, functionKey(number)] })),
];

const PLAIN = "`1234567890-=[]\\;',./";
const SHIFTED = "~!@#$%^&*()_+{}|:\"<>?";
const CODES = [
  "Backquote", "Digit1", "Digit2", "Digit3", "Digit4", "Digit5", "Digit6", "Digit7", "Digit8", "Digit9", "Digit0",
  "Minus", "Equal", "BracketLeft", "BracketRight", "Backslash", "Semicolon", "Quote", "Comma", "Period", "Slash",
] as const;

/** The key stroke for a character, or null where a US keyboard has none. */
export function strokeOf(character: string): Stroke | null {
  if (character === "\n") return { keysym: 0xff0d, code: "Enter", shift: false };
  if (character === "\t") return { keysym: 0xff09, code: "Tab", shift: false };
  const keysym = character.codePointAt(0) ?? 0;
  if (character === " ") return { keysym, code: "Space", shift: false };
  if (/^[a-z]$/.test(character)) return { keysym, code: `Key${character.toUpperCase()}`, shift: false };
  if (/^[A-Z]$/.test(character)) return { keysym, code: `Key${character}`, shift: true };
  const plain = PLAIN.indexOf(character);
  if (plain >= 0) return { keysym, code: CODES[plain] as string, shift: false };
  const shifted = SHIFTED.indexOf(character);
  return shifted >= 0 ? { keysym, code: CODES[shifted] as string, shift: true } : null;
}

export interface Typing {
  strokes: Stroke[];
  /** Characters without a key, each once. */
  missing: string[];
}

export function typingOf(text: string): Typing {
  const strokes: Stroke[] = [];
  const missing = new Set<string>();
  for (const character of text.replace(/\r\n?/g, "\n")) {
    const stroke = strokeOf(character);
    if (stroke) strokes.push(stroke);
    else missing.add(character);
  }
  return { strokes, missing: [...missing] };
}
