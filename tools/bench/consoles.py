"""The web console in Chromium: its first page, a thousand machines, and fifty that change.

The machines are objects of an API server without controllers and guests. A machine changes when its status is written, as a controller
does it. The console is `paddock ui`, a process of its own, so that its CPU is not that of the API server.
"""

import shutil
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from paddock.web.live.topicnames import WebTopic
from tests.host.console import browser as chromium
from tests.host.console.browser import Browser, Page
from tests.reference.client import MERGE_PATCH, Api
from tests.reference.consoleprogram import ConsoleProgram, open_watches, serving_console
from tests.reference.embedded import Embedded, serving
from tools.bench import objects
from tools.bench.offline import BenchError, Figure
from tools.bench.programs import cpu_seconds, pss

MANY, FEW, CHANGING = 1000, 200, 50
_LOADS = 5
_WATCHED_SECONDS = 20.0
_APART_SECONDS = 0.05
_SCROLLED_SECONDS = 5
# a wheel that turns fast
_SCROLLED_PIXELS = 1500
_ROWS = "role=grid >> role=row"
_LOADED = """() => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  const files = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  return { paint: paint.startTime, rows: performance.now(), bytes: files.reduce((sum, each) => sum + each.transferSize, 0) };
}"""
# Views of rows that none of the last had, without a pause that depends on the load of the machine.
_VIEWS = 25
_JUMP = """async (views) => {
  const box = document.querySelector("[role=grid]");
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  for (let view = 1; view <= views; view += 1) {
    box.scrollTop = (view % 2 ? 1 : 2) * box.clientHeight * 2 + view;
    await frame();
    await frame();
  }
}"""
_HEAP = "() => performance.memory.usedJSHeapSize"
_SCROLL = """async ([seconds, speed]) => {
  const scrolls = (each) => each.scrollHeight > each.clientHeight + 500 && getComputedStyle(each).overflowY !== "visible";
  const box = [...document.querySelectorAll("main *")].find(scrolls);
  const frame = 1000 / 60;
  let tasks = 0, frames = 0, dropped = 0;
  const observer = new PerformanceObserver((list) => (tasks += list.getEntries().length));
  observer.observe({ type: "longtask" });
  const way = Math.min(box.scrollHeight - box.clientHeight, seconds * speed), began = performance.now();
  let last = began;
  await new Promise((done) => {
    const step = (now) => {
      frames += 1;
      dropped += Math.max(0, Math.round((now - last) / frame) - 1);
      last = now;
      const part = (now - began) / (seconds * 1000);
      box.scrollTop = way * Math.min(part, 1);
      if (part < 1) requestAnimationFrame(step);
      else done();
    };
    requestAnimationFrame(step);
  });
  return { tasks, frames, dropped };
}"""


def measure(folder: Path, *, quick: bool) -> list[Figure] | str:
    """Return all figures, or why there are none."""
    program = shutil.which("chromium")
    if program is None:
        return "no Chromium: the console is left out"
    try:
        python = chromium.environment()
    except pytest.skip.Exception as error:
        return f"the console is left out: {error}"
    with (
        serving(folder / "console") as server,
        serving_console(server.kubeconfig, folder / "console.log", "-n", objects.NAMESPACE) as console,
    ):
        console.follow()
        return _Bench(server, console, lambda: Browser(python, program)).figures(FEW if quick else MANY)


class _Bench:
    def __init__(self, server: Embedded, console: ConsoleProgram, browser: Callable[[], Browser]) -> None:
        self._server = server
        self._console = console
        self._browser = browser
        self._api = Api(server.access)

    def figures(self, many: int) -> list[Figure]:
        """Take all figures, one after the other."""
        self._make(0, CHANGING)
        with self._window() as browser:
            first = self._loads(browser)
        with self._window() as browser:
            changing = self._while_machines_change(browser)
        self._make(CHANGING, many)
        with self._window() as browser:
            thousand = self._with_many(browser, many)
        return [*first, *changing, *thousand, self._watches()]

    @contextmanager
    def _window(self) -> Iterator[Browser]:
        """A browser that has shown nothing yet."""
        browser = self._browser()
        try:
            yield browser
            if wrong := browser.wrong():
                raise BenchError(f"the page had errors: {'; '.join(wrong)}")
        finally:
            browser.end()

    def _make(self, first: int, end: int) -> None:
        """Create machines that say that they run."""
        if not first:
            self._written("POST", "/api/v1/namespaces", {"metadata": {"name": objects.NAMESPACE}})
        for number in range(first, end):
            name = self._written("POST", objects.COLLECTION, objects.machine(number))["metadata"]["name"]
            self._say(name, "Running")

    def _say(self, name: str, status: str) -> None:
        self._written("PATCH", f"{objects.COLLECTION}/{name}/status", {"status": {"printableStatus": status, "created": True}})

    def _written(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._api.request(method, path, body, headers=MERGE_PATCH if method == "PATCH" else None)
        if not answer.ok:
            raise BenchError(answer.message)
        return answer.body

    def _open(self, browser: Browser) -> Page:
        page = browser.open(self._console.address, storage_state=self._console.stored())
        page.see(_ROWS)
        return page

    def _loads(self, browser: Browser) -> list[Figure]:
        found = []
        for _ in range(_LOADS):
            page = self._open(browser)
            found.append(page.evaluate(_LOADED))
            # A page that stays open would take part in the next figure.
            page.goto("about:blank")
        middle = {name: statistics.median(each[name] for each in found) for name in ("paint", "rows", "bytes")}
        return [
            Figure("first paint, nothing cached", middle["paint"], f"{CHANGING} machines"),
            Figure("rows in view", middle["rows"]),
            Figure("bytes of the first page, files and answers, compressed", middle["bytes"] / 1000),
        ]

    def _while_machines_change(self, browser: Browser) -> list[Figure]:
        self._open(browser)
        console, shown = _Meter([self._console.process.pid]), _Meter(_browser_processes(browser))
        with self._changing() as written:
            time.sleep(_WATCHED_SECONDS)
        rate = written[0] / _WATCHED_SECONDS
        text = f"of one core; {rate:.0f} changes a second"
        return [
            Figure("CPU of the console's server, 50 machines, 15 to 18 changes a second", console.percent(), text),
            Figure("CPU of the browser meanwhile, all processes", shown.percent(), "of one core"),
        ]

    @contextmanager
    def _changing(self) -> Iterator[list[int]]:
        """Write statuses in turns, in a thread of its own; the number of those that were written is the one element."""
        written, ends = [0], threading.Event()

        def write() -> None:
            while not ends.wait(_APART_SECONDS):
                number = written[0]
                name = objects.machine(number % CHANGING)["metadata"]["name"]
                self._say(name, "Paused" if number // CHANGING % 2 == 0 else "Running")
                written[0] += 1

        thread = threading.Thread(target=write)
        thread.start()
        try:
            yield written
        finally:
            ends.set()
            thread.join()

    def _with_many(self, browser: Browser, many: int) -> list[Figure]:
        page = self._open(browser)
        page.see(f"text={many:,} machines shown")
        # The page loads parts that it may need soon, and Chromium tidies up after the load.
        time.sleep(_WATCHED_SECONDS / 4)
        rests = _Meter(_browser_processes(browser))
        time.sleep(_WATCHED_SECONDS / 2)
        at_rest = rests.percent()
        heap = page.evaluate(_HEAP)
        # Chromium keeps another one ready.
        memory = max(map(pss, _browser_processes(browser, "renderer")))
        shown = _Meter(_browser_processes(browser))
        scrolled = page.evaluate(_SCROLL, [_SCROLLED_SECONDS, _SCROLLED_PIXELS])
        for_a_frame = shown.seconds() / scrolled["frames"] * 1000
        shown = _Meter(_browser_processes(browser))
        page.evaluate(_JUMP, _VIEWS)
        for_a_view = shown.seconds() / _VIEWS * 1000
        return [
            Figure("CPU of the browser, 1,000 machines at rest", at_rest, f"of one core; {many} machines"),
            Figure("JavaScript's memory, 1,000 machines", heap / 1e6, f"{many} machines"),
            Figure("memory of the page's process (PSS)", memory / 1e6),
            Figure(
                "frames dropped, 1,000 rows scrolled by 1,500 pixels a second",
                scrolled["dropped"] / (scrolled["frames"] + scrolled["dropped"]) * 100,
                f"{many} rows",
            ),
            Figure("CPU of the browser for a frame meanwhile, all processes", for_a_frame),
            Figure("tasks of more than 50 ms meanwhile, in 5 s", scrolled["tasks"]),
            Figure("CPU of the browser for a view of other rows, all processes", for_a_view),
        ]

    def _watches(self) -> Figure:
        """Count at the API server, with five pages that show everything."""
        names = get_args(WebTopic)
        pages = [self._console.stream(*names) for _ in range(5)]
        entered = [each.__enter__() for each in pages]
        for events in entered:
            for _ in names:
                next(events)
        found = open_watches(self._server.access)
        for each in pages:
            each.__exit__(None, None, None)
        return Figure("watches of one kind at the API server, at most, 5 pages with all topics", max(found.values()), f"{len(found)} kinds")


class _Meter:
    """The CPU that processes use from now on."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        self._began = time.monotonic()
        self._used = sum(map(_cpu, pids))

    def seconds(self) -> float:
        """Seconds of CPU since the start."""
        return sum(map(_cpu, self._pids)) - self._used

    def percent(self) -> float:
        """Percent of one core since the start."""
        return self.seconds() / (time.monotonic() - self._began) * 100


def _cpu(pid: int) -> float:
    try:
        return cpu_seconds(pid)
    except OSError:
        return 0.0


def _browser_processes(browser: Browser, kind: str = "") -> list[int]:
    """Return the processes of Chromium below the driver; of a kind, such as `renderer`, if one is given."""
    found, left = [], [browser._process.pid]
    while left:
        pid = left.pop()
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            left += map(int, task.read_text().split())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"chromium" in command.split(b"\0")[0] and (not kind or f"--type={kind}".encode() in command):
            found.append(pid)
    return found
