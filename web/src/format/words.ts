/** A text that begins and ends as a sentence does; empty if the text is. */
export function sentence(text: string): string {
  if (!text) return "";
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}
