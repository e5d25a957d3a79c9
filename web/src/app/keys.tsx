import { show } from "../parts/dialog";
import { isFlag, remembered } from "../state/preferences";
import { lazy } from "./lazy";
import { go, link } from "./routes";

/** Keys that act without Control; people who speak to their computer turn them off. */
export const singleKeys = remembered<boolean>("single-keys", true, isFlag);

const Palette = lazy(() => import("./palette").then((module) => module.Palette));
const CreateDialog = lazy(() => import("../create/dialog").then((module) => module.CreateDialog));
const KeyHelp = lazy(() => import("./keyhelp").then((module) => module.KeyHelp));

export const openPalette = (): void => show((close) => <Palette close={close} />);
export const openCreate = (image = ""): void => show((close) => <CreateDialog close={close} image={image} />);
export const openKeyHelp = (): void => show((close) => <KeyHelp close={close} />);

/** Keys that act anywhere. */
export const KEYS: readonly { key: string; text: string; act: () => void }[] = [
  { key: "/", text: "Search in the table", act: () => document.querySelector<HTMLElement>("input[type=search]")?.focus() },
  { key: "n", text: "New machine", act: () => openCreate() },
  { key: "m", text: "Go to the machines", act: () => go(link("machines")) },
  { key: "h", text: "Go to the host", act: () => go(link("host")) },
  { key: "e", text: "Go to the events", act: () => go(link("events")) },
  { key: "?", text: "Show the shortcuts", act: () => openKeyHelp() },
];

// A person who types, and a terminal or a screen of a guest, keep their keys.
function takesKeys(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || target.closest("input,textarea,select,canvas,dialog,[data-keys]") !== null);
}

export function listen(): void {
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      if (!document.querySelector("dialog[open]")) openPalette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || !singleKeys.value || takesKeys(event.target)) return;
    const found = KEYS.find(({ key }) => key === event.key);
    if (!found || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    found.act();
  });
}
