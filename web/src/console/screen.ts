/** A guest's screen in an element, over one connection. */

import RFB from "@novnc/novnc";
import { typingOf, type Combination } from "./keys";

export interface GuestScreen {
  send(combination: Combination): void;
  /** Types text as keys of a US keyboard. Resolves with the characters that have no key. */
  type(text: string, signal: AbortSignal): Promise<string[]>;
  scaled(on: boolean): void;
  viewOnly(on: boolean): void;
  picture(): Promise<Blob>;
  focus(): void;
  blur(): void;
  dispose(): void;
}

export interface ScreenEvents {
  onReady: (name: string) => void;
  onEnd: (reason: string) => void;
  onClipboard: (text: string) => void;
}

const BETWEEN_KEYS_MS = 12;
const SHIFT = [0xffe1, "ShiftLeft"] as const;

export function openScreen(parent: HTMLElement, socket: WebSocket, events: ScreenEvents): GuestScreen {
  const rfb = new RFB(parent, socket, { shared: true });
  rfb.scaleViewport = true;
  rfb.clipViewport = false;
  rfb.background = "transparent";
  rfb.qualityLevel = 6;
  rfb.compressionLevel = 2;
  rfb.addEventListener("connect", () => events.onReady(""));
  // noVNC logs an error if one ends a connection that has ended.
  let connected = true;
  rfb.addEventListener("disconnect", () => {
    connected = false;
    events.onEnd("");
  });
  rfb.addEventListener("securityfailure", (event) => events.onEnd(event.detail.reason ?? "the screen refused the connection"));
  rfb.addEventListener("credentialsrequired", () => events.onEnd("the screen asks for a password, which consoles of Paddock never need"));
  rfb.addEventListener("clipboard", (event) => events.onClipboard(event.detail.text));
  const key = ([keysym, code]: readonly [number, string], down: boolean): void => rfb.sendKey(keysym, code, down);
  return {
    send: ({ keys }) => {
      for (const each of keys) key(each, true);
      for (const each of [...keys].reverse()) key(each, false);
    },
    type: async (text, signal) => {
      const { strokes, missing } = typingOf(text);
      for (const stroke of strokes) {
        if (signal.aborted) break;
        if (stroke.shift) key(SHIFT, true);
        key([stroke.keysym, stroke.code], true);
        key([stroke.keysym, stroke.code], false);
        if (stroke.shift) key(SHIFT, false);
        // A guest's keyboard controller holds 16 bytes; faster typing loses keys.
        await new Promise((resolve) => setTimeout(resolve, BETWEEN_KEYS_MS));
      }
      return missing;
    },
    scaled: (on) => {
      rfb.scaleViewport = on;
    },
    viewOnly: (on) => {
      rfb.viewOnly = on;
    },
    picture: () => new Promise((resolve, reject) => rfb.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the screen has no picture yet"))), "image/png")),
    focus: () => rfb.focus(),
    blur: () => rfb.blur(),
    dispose: () => {
      if (connected) rfb.disconnect();
    },
  };
}
