// Looks at pages in headless Chromium, over the pipe that its debugger offers: no package, no port.
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--hide-scrollbars",
  "--remote-debugging-pipe",
];

export class Browser {
  #count = 0;
  #waiting = new Map();
  #rest = "";
  /** what the page logged as an error or a warning, and what its policy refused */
  complaints = [];

  static async open(program = "chromium") {
    const browser = new Browser();
    browser.profile = await mkdtemp(join(tmpdir(), "paddock-browser-"));
    browser.process = spawn(program, [...FLAGS, `--user-data-dir=${browser.profile}`, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    browser.process.stdio[4].on("data", (bytes) => browser.#receive(bytes));
    const { targetInfos } = await browser.#send("Target.getTargets");
    const { sessionId } = await browser.#send("Target.attachToTarget", { targetId: targetInfos.find((each) => each.type === "page").targetId, flatten: true });
    browser.session = sessionId;
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await browser.command(`${domain}.enable`);
    return browser;
  }

  command(method, params = {}) {
    return this.#send(method, params, this.session);
  }

  #send(method, params = {}, sessionId = undefined) {
    const id = (this.#count += 1);
    this.process.stdio[3].write(`${JSON.stringify({ id, method, params, ...(sessionId ? { sessionId } : {}) })}\0`);
    return new Promise((done, fail) => this.#waiting.set(id, { done, fail }));
  }

  #receive(bytes) {
    const parts = (this.#rest + bytes).split("\0");
    this.#rest = parts.pop();
    for (const part of parts) {
      const message = JSON.parse(part);
      const waiting = this.#waiting.get(message.id);
      if (waiting) {
        this.#waiting.delete(message.id);
        if (message.error) waiting.fail(new Error(message.error.message));
        else waiting.done(message.result);
      } else if (message.method === "Log.entryAdded") this.complaints.push(message.params.entry.text);
      else if (message.method === "Runtime.exceptionThrown") this.complaints.push(message.params.exceptionDetails.exception?.description ?? message.params.exceptionDetails.text);
      else if (message.method === "Runtime.consoleAPICalled" && message.params.type === "error") this.complaints.push(message.params.args.map((each) => each.value).join(" "));
    }
  }

  async size(width, height, { dark = false } = {}) {
    await this.command("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 600 });
    await this.command("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
  }

  async go(url, selector = "main") {
    await this.command("Page.navigate", { url });
    await this.until(`document.querySelector(${JSON.stringify(selector)}) !== null`);
  }

  /** The value of an expression in the page; a promise is awaited. */
  async value(expression) {
    const { result, exceptionDetails } = await this.command("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true, userGesture: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async until(expression, tries = 200) {
    for (let count = 0; count < tries; count += 1) {
      if (await this.value(expression).catch(() => false)) return;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`never true: ${expression}`);
  }

  /** Click what has this text or this selector. */
  async click(what) {
    const found = `[...document.querySelectorAll("button,a,summary,label,input")].filter((each) => each.checkVisibility())`;
    await this.until(`(document.querySelector(${JSON.stringify(what.replace(/^text=.*/, "nothing"))}) ?? ${found}.find((each) => each.textContent.trim().startsWith(${JSON.stringify(what.replace(/^text=/, ""))}))) ? true : false`);
    await this.value(`(document.querySelector(${JSON.stringify(what.replace(/^text=.*/, "nothing"))}) ?? ${found}.find((each) => each.textContent.trim().startsWith(${JSON.stringify(what.replace(/^text=/, ""))}))).click()`);
  }

  async key(key, { ctrl = false, text = key.length === 1 ? key : undefined } = {}) {
    const code = { Escape: 27, Enter: 13, Tab: 9, Home: 36, End: 35, ArrowUp: 38, ArrowDown: 40, ArrowLeft: 37, ArrowRight: 39 }[key];
    const common = { key, ...(code ? { windowsVirtualKeyCode: code } : {}), modifiers: ctrl ? 2 : 0, ...(text && !ctrl ? { text } : {}) };
    await this.command("Input.dispatchKeyEvent", { type: "keyDown", ...common });
    await this.command("Input.dispatchKeyEvent", { type: "keyUp", key, modifiers: common.modifiers });
  }

  async type(text) {
    await this.command("Input.insertText", { text });
  }

  async wait(milliseconds) {
    await new Promise((done) => setTimeout(done, milliseconds));
  }

  async picture(file) {
    const { data } = await this.command("Page.captureScreenshot", { format: "png" });
    await writeFile(file, Buffer.from(data, "base64"));
  }

  async close() {
    await this.#send("Browser.close").catch(() => {});
    await new Promise((done) => (this.process.exitCode === null ? this.process.once("exit", done) : done()));
    await rm(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
