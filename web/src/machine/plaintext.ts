/** Logs of serial consoles as plain text. */

/** Without the escape sequences that colour a terminal and move its cursor. */
export function plain(text: string): string {
  return text
    .replace(/\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g, "")
    .replace(/\u001b[[(][0-9;?]*[ -/]*[@-~]/g, "")
    .replace(/\r+\n/g, "\n")
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "");
}
