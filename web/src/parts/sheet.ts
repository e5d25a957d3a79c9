const sheets = new Map<string, Promise<void>>();

/** Load a style sheet once: `import address from "./x.css?sheet"`. The page's policy allows files, and no style elements. */
export function loadSheet(address: string): Promise<void> {
  const found = sheets.get(address);
  if (found) return found;
  const loading = new Promise<void>((done, fail) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = sheetUrl(address);
    link.onload = () => done();
    link.onerror = () => fail(new Error(`The style sheet ${address} did not load; reload the page`));
    document.head.append(link);
  });
  sheets.set(address, loading);
  return loading;
}

/** The absolute address of a built file; its scripts lie beside it. */
export const sheetUrl = (address: string): string => new URL(address, import.meta.url).href;
