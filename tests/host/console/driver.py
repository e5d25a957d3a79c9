"""Drives Chromium for tests, in the environment of `requirements-browser.lock`: a JSON request a line on stdin, an answer a line on stdout.

It holds no tests. A request is {"page": 0, "do": NAME, "with": {...}}; an answer is {"value": ...} or {"error": "..."}.
"""

import base64
import json
import re
import sys
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Error, sync_playwright

# Nothing here may reach the network, or have a graphics card.
SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
# What the browser and noVNC log of answers that the page shows to the person: refusals, and a screen that is not there.
EXPECTED = re.compile(r"the server responded with a status of 4\d\d|^Failed when connecting: Connection closed \(code: 44\d\d")


class Driver:
    """A browser with windows of their own profiles, and everything that went wrong in them."""

    def __init__(self, browser, milliseconds):
        self._browser = browser
        self._milliseconds = milliseconds
        self._contexts = []
        self._pages = []
        self._problems = []

    def answer(self, request):
        """Do what a request asks for."""
        name, options = request["do"], request.get("with", {})
        if name in ("open", "wrong", "record"):
            return getattr(self, f"_{name}")(**options)
        return getattr(self, f"_{name}")(self._pages[request["page"]], **options)

    def _open(self, address, **options):
        context = self._browser.new_context(**options)
        context.set_default_timeout(self._milliseconds)
        context.tracing.start(snapshots=True)
        self._contexts.append(context)
        context.on("page", self._watch)
        page = context.new_page()
        page.goto(address)
        return self._pages.index(page)

    def _watch(self, page):
        self._pages.append(page)
        page.on("console", self._hear)
        page.on("request", self._judge)
        page.on("pageerror", lambda error: self._problems.append(f"uncaught: {error}"))
        page.on("dialog", self._refuse)

    def _hear(self, said):
        if said.type == "error" and not EXPECTED.search(said.text):
            self._problems.append(f"console: {said.text} {said.location.get('url', '')}")

    def _judge(self, request):
        if not request.url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
            self._problems.append(f"a request to elsewhere: {request.url}")

    def _refuse(self, dialog):
        self._problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _wrong(self):
        found, self._problems = self._problems, []
        return found

    def _goto(self, page, address):
        page.goto(address)

    def _locate(self, page, method, selector, arguments):
        return getattr(page.locator(selector).first, method)(*arguments)

    def _every(self, page, selector):
        return page.locator(selector).all_inner_texts()

    def _count(self, page, selector):
        return page.locator(selector).count()

    def _wait(self, page, selector, state):
        page.locator(selector).first.wait_for(state=state)

    def _press(self, page, keys):
        page.keyboard.press(keys)

    def _type(self, page, text):
        page.keyboard.type(text)

    def _evaluate(self, page, script, argument=None):
        return page.evaluate(script, argument)

    def _size(self, page, width, height):
        page.set_viewport_size({"width": width, "height": height})

    def _colours(self, page, scheme):
        page.emulate_media(color_scheme=scheme)

    def _picture(self, page, path):
        page.screenshot(path=path)

    def _small(self, page, path, quality):
        # Playwright writes no WebP; the browser does.
        session = page.context.new_cdp_session(page)
        taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": quality})
        session.detach()
        Path(path).write_bytes(base64.b64decode(taken["data"]))

    def _axe(self, page, standards):
        found = Axe().run(page, options={"runOnly": standards, "resultTypes": ["violations"]})
        return [
            f"{rule['id']}: {rule['help']}: {node['html'][:200]} {node['failureSummary'].splitlines()[-1].strip()}"
            for rule in found.response["violations"]
            for node in rule["nodes"]
        ]

    def _popup(self, page, selector):
        with page.expect_popup() as opened:
            page.locator(selector).first.click()
        return self._pages.index(opened.value)

    def _beside(self, page):
        opened = page.context.new_page()
        opened.goto(page.url)
        return self._pages.index(opened)

    def _close(self, page):
        page.close()

    def _clipboard(self, page):
        # What is not among those that are granted is denied from then on.
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        return page.evaluate("() => navigator.clipboard.readText()")

    def _download(self, page, selector):
        with page.expect_download() as begun:
            page.locator(selector).first.click()
        return str(begun.value.path())

    def _offline(self, page, off):
        page.context.set_offline(off)

    def _record(self, folder):
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for number, page in enumerate(self._pages):
            if page.is_closed():
                continue
            try:
                page.screenshot(path=place / f"page-{number}.png", timeout=10_000)
            except Error as error:
                (place / f"page-{number}.txt").write_text(str(error))
        for number, context in enumerate(self._contexts):
            context.tracing.stop_chunk(path=place / f"trace-{number}.zip")
            context.tracing.start_chunk()


def main():
    """Answer until stdin ends. The arguments are the path of Chromium and the milliseconds that a wait may take."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=sys.argv[1], args=SWITCHES)
        driver = Driver(browser, int(sys.argv[2]))
        for line in sys.stdin:
            try:
                answer = {"value": driver.answer(json.loads(line))}
            except Error as error:
                answer = {"error": str(error)}
            print(json.dumps(answer), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
