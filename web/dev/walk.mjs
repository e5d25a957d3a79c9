// Walks through the page in headless Chromium, with the development server behind it: `npm run walk [-- DIRECTORY]`.
// With a directory it leaves pictures there, in both themes and at three widths.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { Browser } from "./browser.mjs";
import { WEB } from "../build/settings.mjs";

const PICTURES = process.argv[2];
const WIDTHS = [1440, 900, 390];
const PAGES = ["machines", "images", "volumes", "snapshots", "networks", "pools", "providers", "migrations", "events", "host", "settings"];

async function serve(port, ...flags) {
  const server = spawn(process.execPath, [resolve(WEB, "dev/serve.mjs"), "--port", String(port), ...flags], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((done) => server.stdout.once("data", done));
  return { url: `http://127.0.0.1:${port}/`, stop: () => server.kill() };
}

const text = (selector) => `document.querySelector(${JSON.stringify(selector)})?.textContent ?? ""`;
const number = (selector) => `document.querySelectorAll(${JSON.stringify(selector)}).length`;

const WALKS = {
  async "the list draws the rows in view only, and scrolls to any"({ browser, url }) {
    await browser.go(`${url}#/machines`, ".table-row");
    const drawn = await browser.value(number(".table-row"));
    assert.ok(drawn > 10 && drawn < 60, `${drawn} rows are drawn`);
    assert.equal(await browser.value(`document.querySelector("[role=grid]").getAttribute("aria-rowcount")`), "1001");
    await browser.value(`document.querySelector("[role=grid]").focus()`);
    await browser.key("End");
    await browser.until(`document.querySelector(".table-row.active")?.getAttribute("aria-rowindex") === "1001"`);
    await browser.key("Home");
    await browser.until(`document.querySelector(".table-row.active")?.getAttribute("aria-rowindex") === "2"`);
  },
  async "keys select rows, and the bar acts on them"({ browser }) {
    await browser.value(`document.querySelector("[role=grid]").focus()`);
    await browser.key(" ");
    await browser.key("ArrowDown");
    await browser.key(" ");
    await browser.until(`/2 machines selected/.test(${text(".selection")})`);
    await browser.click("text=Clear");
    await browser.until(`${number(".selection")} === 0`);
  },
  async "a search narrows the list, and can be kept"({ browser }) {
    await browser.value(`document.querySelector("[role=grid]").focus()`);
    await browser.key("/");
    await browser.until(`document.activeElement?.type === "search"`);
    await browser.type("state:good web");
    await browser.until(`Number(document.querySelector("[role=grid]").getAttribute("aria-rowcount")) < 200`);
    await browser.click("text=Save this filter");
    await browser.until(`${number(".chip-pair")} === 1`);
    await browser.click(".chip-pair .chip:last-child");
    await browser.value(`(() => { const box = document.querySelector("input[type=search]"); box.value = ""; box.dispatchEvent(new Event("input", { bubbles: true })); })()`);
    await browser.until(`document.querySelector("[role=grid]").getAttribute("aria-rowcount") === "1001"`);
  },
  async "columns are chosen"({ browser }) {
    await browser.click("text=Columns");
    await browser.until(`${number(".menu-panel input")} > 8`);
    await browser.click("text=Disks");
    await browser.until(`[...document.querySelectorAll("[role=columnheader]")].some((each) => each.textContent === "Disks")`);
    await browser.click("text=Default columns");
    await browser.until(`![...document.querySelectorAll("[role=columnheader]")].some((each) => each.textContent === "Disks")`);
    await browser.key("Escape");
  },
  async "a menu says why an action is not possible"({ browser }) {
    await browser.click(".table-row [aria-haspopup]");
    await browser.until(`${number('[role="menuitem"]')} > 4`);
    assert.ok((await browser.value(number('[role="menuitem"][aria-disabled="true"] .menu-reason'))) > 0);
    await browser.key("Escape");
    await browser.until(`${number('[role="menuitem"]')} === 0`);
    assert.equal(await browser.value(`document.activeElement.getAttribute("aria-haspopup")`), "menu", "the focus returns to the button");
  },
  async "three clicks make a machine"({ browser }) {
    await browser.click("text=New machine");
    await browser.until(`${number(".tile")} > 0`);
    await browser.click(".tile input");
    await browser.until(`/apiVersion/.test(${text(".yaml")})`);
    await browser.click("text=Vitistack");
    await browser.until(`/vitistack.io/.test(${text(".yaml")})`);
    await browser.click("text=KubeVirt");
    await browser.until(`/kubevirt.io/.test(${text(".yaml")})`);
    const before = await browser.value(text(".side .count"));
    await browser.click(".dialog-foot .primary");
    await browser.until(`${number("dialog")} === 0 && location.hash.startsWith("#/machines/vm/default/")`);
    await browser.until(`${text(".side .count")} !== ${JSON.stringify(before)}`);
  },
  async "a name that is taken is refused before anything is sent"({ browser, url }) {
    await browser.go(`${url}#/machines`, ".table-row");
    await browser.click("text=New machine");
    await browser.click(".tile input");
    await browser.until(`/apiVersion/.test(${text(".yaml")})`);
    await browser.value(`(() => { const box = document.querySelector(".create-form .field input"); box.value = "Not A Name"; box.dispatchEvent(new Event("input", { bubbles: true })); })()`);
    await browser.until(`/letter/.test(${text(".field-error")})`);
    assert.equal(await browser.value(`document.querySelector(".dialog-foot .primary").getAttribute("aria-disabled")`), "true");
    await browser.key("Escape");
    await browser.until(`${number("dialog")} === 0`);
  },
  async "the palette finds and acts"({ browser }) {
    await browser.key("k", { ctrl: true });
    await browser.until(`document.activeElement?.getAttribute("role") === "combobox"`);
    await browser.type("events");
    await browser.until(`/Events/.test(${text('[role="option"][aria-selected="true"]')})`);
    await browser.key("Enter");
    await browser.until(`location.hash === "#/events"`);
  },
  async "a task is cancelled"({ browser }) {
    await browser.click(".tasks-line");
    await browser.click("text=Cancel");
    await browser.until(`/cancelled/.test(${text(".tasks-list")})`);
    await browser.click(".tasks-line");
  },
  async "a session ends and begins"({ browser, url }) {
    await browser.go(`${url}#/settings`, ".settings");
    await browser.click("text=Sign out");
    await browser.until(`${number(".sign-in input")} === 1`);
    await browser.value(`document.querySelector(".sign-in input").focus()`);
    await browser.type("short");
    await browser.key("Enter", { text: "\r" });
    await browser.until(`/too short/.test(${text(".note")})`);
    await browser.type("-and-now-long-enough");
    await browser.key("Enter", { text: "\r" });
    await browser.until(`${number(".settings")} > 0`);
    await browser.go(`${url}#/machines`, ".table-row");
  },
  async "every page has one heading, a main part, and names for all controls"({ browser, url }) {
    for (const page of PAGES) {
      await browser.go(`${url}#/${page}`, "main h1");
      await browser.wait(200);
      assert.equal(await browser.value(number("main h1")), 1, page);
      assert.match(await browser.value("document.title"), /^\S.* · Paddock$/, page);
      const nameless = await browser.value(
        `[...document.querySelectorAll("button,a,input,select,textarea")].filter((each) => !(each.textContent.trim() || each.getAttribute("aria-label") || each.labels?.length)).map((each) => each.outerHTML.slice(0, 120))`,
      );
      assert.deepEqual(nameless, [], page);
      const ids = await browser.value(`[...document.querySelectorAll("[id]")].map((each) => each.id)`);
      assert.equal(new Set(ids).size, ids.length, `${page}: two elements have one id`);
    }
  },
  async "no page is wider than a phone"({ browser, url }) {
    await browser.size(390, 844);
    for (const page of PAGES) {
      await browser.go(`${url}#/${page}`, "main h1");
      await browser.wait(200);
      assert.ok(await browser.value(`document.documentElement.scrollWidth <= innerWidth && document.querySelector("main").scrollWidth <= innerWidth`), page);
    }
    await browser.size(1440, 900);
  },
  async "the page says that the console is away, and comes back"({ browser, url, restart }) {
    await browser.go(`${url}#/machines`, ".table-row");
    await restart(() => browser.until(`/does not answer/.test(${text(".away")})`));
    await browser.until(`${number(".away")} === 0`, 600);
    // What the browser logs about the connections that failed is what was meant to happen.
    browser.complaints = browser.complaints.filter((each) => !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|Failed to load resource/.test(each));
  },
};

async function pictures(browser, url, folder) {
  await mkdir(folder, { recursive: true });
  for (const dark of [false, true]) {
    for (const width of WIDTHS) {
      await browser.size(width, width < 500 ? 844 : 900, { dark });
      for (const page of [...PAGES, "machines/vm/default/web"]) {
        await browser.go(`${url}#/${page}`, "main");
        await browser.wait(400);
        await browser.picture(resolve(folder, `${page.replaceAll("/", "-")}-${width}${dark ? "-dark" : ""}.png`));
      }
    }
  }
}

let server = await serve(8098);
const browser = await Browser.open();
let failed = 0;
const restart = async (meanwhile) => {
  server.stop();
  await meanwhile();
  server = await serve(8098);
};
try {
  await browser.size(1440, 900);
  for (const [name, walk] of Object.entries(WALKS)) {
    try {
      await walk({ browser, url: server.url, restart });
      // A refusal that a walk asked for is logged as a status.
      const complaints = browser.complaints.splice(0).filter((each) => !/status of 40\d/.test(each));
      assert.deepEqual(complaints, []);
      console.log(`ok      ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}\n${error.stack}`);
    }
  }
  if (PICTURES) await pictures(browser, server.url, PICTURES);
} finally {
  await browser.close();
  server.stop();
}
process.exit(failed ? 1 : 0);
