import { useEffect, useRef, useState } from "preact/hooks";
import { socketAddress } from "../api/client";
import type { MachineRow } from "../generated/answers";
import { Menu } from "../parts/menu";
import { loadSheet } from "../parts/sheet";
import { complain, copy, tell } from "../parts/toasts";
import sheet from "./console.css?sheet";
import { askPaste, Frame, useLink } from "./frame";
import { COMBINATIONS, typingOf, type Combination } from "./keys";
import { type GuestScreen, openScreen } from "./screen";
import type { Channel } from "./socket";
import { download, pictureName } from "./window";

await loadSheet(sheet);

interface ScreenProps {
  place: string;
  row: MachineRow;
  detached?: boolean;
}

/** The screen, keyboard and mouse of a machine. */
export function GraphicalConsole({ place, row, detached = false }: ScreenProps) {
  const parent = useRef<HTMLDivElement>(null);
  const frame = useRef<HTMLButtonElement>(null);
  const screen = useRef<GuestScreen | null>(null);
  const [scaled, setScaled] = useState(true);
  const [watching, setWatching] = useState(false);
  const [clipboard, setClipboard] = useState("");
  const settings = useRef({ scaled, watching });
  settings.current = { scaled, watching };
  const attach = (channel: Channel): void => {
    if (!parent.current) return;
    screen.current?.dispose();
    parent.current.replaceChildren();
    const opened = openScreen(parent.current, channel.socket, { onReady: () => opened.focus(), onEnd: channel.end, onClipboard: setClipboard });
    opened.scaled(settings.current.scaled);
    opened.viewOnly(settings.current.watching);
    screen.current = opened;
  };
  const { state, link } = useLink(socketAddress(`sockets/${place}/vnc`), row, attach);
  useEffect(() => screen.current?.scaled(scaled), [scaled]);
  useEffect(() => screen.current?.viewOnly(watching), [watching]);
  useEffect(() => () => screen.current?.dispose(), []);
  useEffect(() => leaveWith(parent.current, () => frame.current?.focus()), []);
  const press = (combination: Combination): void => {
    screen.current?.send(combination);
    screen.current?.focus();
  };
  const [first, ...others] = COMBINATIONS;
  return (
    <Frame
      tab="screen"
      label="Screen"
      {...{ place, row, detached, state }}
      connect={() => link?.hurry()}
      disconnect={() => link?.stop()}
      leave={() => link?.move()}
      hint={
        <>
          <kbd>Ctrl</kbd>+<kbd>F6</kbd> leaves the screen. Text is typed on a US keyboard.
        </>
      }
      tools={
        <>
          <button ref={frame} type="button" class="button small" onClick={() => first && press(first)}>
            {first?.label}
          </button>
          <Menu label="Send keys" button="button small" items={() => others.map((each) => ({ text: each.label, act: () => press(each) }))}>
            Keys
          </Menu>
          <button type="button" class="button small" onClick={() => type(screen.current)}>
            Type text
          </button>
          <button type="button" class="button small" aria-pressed={scaled} onClick={() => setScaled(!scaled)}>
            Scale
          </button>
          <Menu
            label="More tools of the screen"
            button="button small"
            items={() => [
              { text: "Save a picture", act: () => void save(screen.current, row.name) },
              { text: watching ? "Use keyboard and mouse" : "Only watch", act: () => setWatching(!watching) },
              { text: "Copy the guest's clipboard", reason: clipboard ? "" : "The guest has sent no clipboard.", act: () => void copy(clipboard) },
            ]}
          />
        </>
      }
    >
      <div ref={parent} class={`screen${scaled ? "" : " unscaled"}`} />
    </Frame>
  );
}

/** Tab belongs to the guest, so one key leads out. noVNC listens on its canvas, therefore this listens before it. */
function leaveWith(element: HTMLElement | null, leave: () => void): (() => void) | undefined {
  const listen = (event: KeyboardEvent): void => {
    if (event.key !== "F6" || !event.ctrlKey) return;
    event.preventDefault();
    event.stopPropagation();
    leave();
  };
  element?.addEventListener("keydown", listen, { capture: true });
  return () => element?.removeEventListener("keydown", listen, { capture: true });
}

function type(screen: GuestScreen | null): void {
  if (!screen) return;
  askPaste({
    title: "Type text into the guest",
    verb: "Type",
    note: (text) => {
      const { missing } = typingOf(text);
      return missing.length > 0 ? `A US keyboard has no key for ${missing.join(" ")}; the page leaves them out.` : "";
    },
    send: (text) => {
      screen.focus();
      void screen.type(text, AbortSignal.timeout(120_000)).then(() => tell("Typed the text"));
    },
  });
}

async function save(screen: GuestScreen | null, machine: string): Promise<void> {
  if (!screen) return;
  try {
    download(await screen.picture(), pictureName(machine, new Date()));
  } catch (thrown) {
    complain(thrown);
  }
}
