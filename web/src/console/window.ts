/** Windows of their own for consoles and screens, and the full screen. */

import { machineLink } from "../app/routes";

/** Opens the console of a machine in a window of its own, and returns whether there is one. Another call brings the same window to the front. */
export function detach(place: string, tab: "console" | "screen"): boolean {
  const address = `${location.pathname}${machineLink(place, tab)}?window=1`;
  return window.open(address, `paddock ${tab} ${place}`, "popup,width=1060,height=760") !== null;
}

export async function toggleFullScreen(element: HTMLElement | null): Promise<void> {
  if (document.fullscreenElement) await document.exitFullscreen();
  else await element?.requestFullscreen();
}

/** Saves bytes as a file of the browser. */
export function download(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** `web-20261126-140509.png` */
export function pictureName(machine: string, now: Date): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`;
  return `${machine}-${day}-${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}.png`;
}
