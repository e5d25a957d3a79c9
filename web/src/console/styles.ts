/** Style sheets for a library that writes `<style>` elements, which the Content-Security-Policy of the page forbids. */

/** An element in place of `<style>`: what is written into it becomes a constructed style sheet, which the policy allows. */
function sheetElement(): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  const element = document.createElement("span");
  element.hidden = true;
  let text = "";
  Object.defineProperty(element, "textContent", {
    get: () => text,
    set: (value: string) => {
      text = value;
      sheet.replaceSync(value);
    },
  });
  const remove = element.remove.bind(element);
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    remove();
  };
  return element;
}

/** Runs `action`, in which `document.createElement("style")` makes such an element. xterm.js makes its own while it opens, and never again. */
export function withConstructedSheets(action: () => void): void {
  const make = Document.prototype.createElement;
  const replaced = (name: string, options?: ElementCreationOptions): HTMLElement => {
    if (name.toLowerCase() !== "style") return make.call(document, name, options);
    document.createElement = make;
    const element = sheetElement();
    document.createElement = replaced as typeof document.createElement;
    return element;
  };
  document.createElement = replaced as typeof document.createElement;
  try {
    action();
  } finally {
    Reflect.deleteProperty(document, "createElement");
  }
}
