"""Chromium, driven by a program in an environment of its own: the tests of everything else do without those packages."""

import hashlib
import json
import os
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
LOCK = ROOT / "requirements-browser.lock"
HOME = ROOT / ".cache" / "browser"
DRIVER = Path(__file__).with_name("driver.py")
# A guest under emulation boots meanwhile, on a machine that has other work.
WAIT_MILLISECONDS = 120_000
# The names that axe-core has for the levels A and AA of WCAG 2.0, 2.1 and 2.2.
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_REQUEST = """async ([method, path, body]) => {
  const headers = { "X-Paddock-Console": "1", "Content-Type": "application/json" };
  const answer = await fetch(`/console/v1/${path}`, { method, headers, body: body === null ? undefined : JSON.stringify(body) });
  return { status: answer.status, text: await answer.text() };
}"""


def environment() -> Path:
    """Return the interpreter of an environment with Playwright; skip where it cannot be made."""
    home = HOME / "venv"
    stamp, wanted = home / "lock.sha256", hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(home, clear=True, with_pip=True)
        command: list[str | Path] = [home / "bin" / "pip", "install", "--quiet", "--require-hashes", "--only-binary=:all:", "-r", LOCK]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)
        if installed.returncode != 0:
            pytest.skip(f"needs playwright: it cannot be installed: {installed.stderr.strip().splitlines()[-1]}")
        stamp.write_text(wanted)
    return home / "bin" / "python"


class Browser:
    """A browser. Each window that it opens has cookies and settings of its own."""

    def __init__(self, python: Path, chromium: str) -> None:
        command = [str(python), str(DRIVER), chromium, str(WAIT_MILLISECONDS)]
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=kept)

    def open(self, address: str, **options: object) -> "Page":
        """Open a window. The options are Playwright's of a context."""
        size = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"}
        return Page(self, self.ask(None, "open", address=address, **size | options))

    def open_beside(self, page: "Page") -> "Page":
        """Open another window of the same person."""
        return Page(self, self.ask(page.number, "beside"))

    def wrong(self) -> list[str]:
        """Return what went wrong since the last call: unexpected errors of the pages' consoles, uncaught exceptions, dialogs, requests
        to other hosts."""
        return [str(each) for each in self.ask(None, "wrong")]

    def record(self, folder: Path) -> None:
        """Write what every page shows, and what was done to it."""
        self.ask(None, "record", folder=str(folder))

    def ask(self, page: int | None, do: str, **options: object) -> Any:
        """Have the driver do something."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"page": page, "do": do, "with": options}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the driver of the browser ended"
        answer = json.loads(line)
        if "error" in answer:
            pytest.fail(f"{do} {options}: {answer['error']}")
        return answer["value"]

    def end(self) -> None:
        """End the driver, and the browser with it."""
        self._process.communicate()


@dataclass(frozen=True)
class Page:
    """A page. Selectors are Playwright's; all of its methods wait until the page has what they need."""

    browser: Browser
    number: int

    def _do(self, name: str, **options: object) -> Any:
        return self.browser.ask(self.number, name, **options)

    def apply(self, manifest: str) -> None:
        """Write objects as the page does, with the session's rights."""
        answer = self.request("POST", "apply", {"yaml": manifest, "dryRun": False, "force": False})
        assert answer["status"] < 400, answer

    def request(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Send a request to the API of the console, with the cookie and the origin of the page."""
        return dict(self.evaluate(_REQUEST, [method, path, body]))

    def open_machine(self, name: str) -> None:
        """Open the page of a machine from the list."""
        self.click(f"role=grid >> role=link[name='{name}']")
        self.see(f"h1:text-is('{name}')")

    def address(self) -> str:
        """Return the address of the console."""
        return str(self.evaluate("() => `${location.origin}/`"))

    def goto(self, address: str) -> None:
        """Load an address."""
        self._do("goto", address=address)

    def click(self, selector: str) -> None:
        """Click."""
        self._do("locate", method="click", selector=selector, arguments=[])

    def fill(self, selector: str, text: str) -> None:
        """Put a text into a field."""
        self._do("locate", method="fill", selector=selector, arguments=[text])

    def choose(self, selector: str, value: str) -> None:
        """Choose an entry of a list."""
        self._do("locate", method="select_option", selector=selector, arguments=[value])

    def see(self, selector: str) -> None:
        """Wait until it is in view."""
        self._do("wait", selector=selector, state="visible")

    def miss(self, selector: str) -> None:
        """Wait until it is not in view."""
        self._do("wait", selector=selector, state="hidden")

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return str(self._do("locate", method="inner_text", selector=selector, arguments=[]))

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements, without waiting."""
        return [str(each) for each in self._do("every", selector=selector)]

    def count(self, selector: str) -> int:
        """Return the number of elements, without waiting."""
        return int(self._do("count", selector=selector))

    def attribute(self, selector: str, name: str) -> str:
        """Return an attribute; nothing if the element lacks it."""
        return self._do("locate", method="get_attribute", selector=selector, arguments=[name]) or ""

    def press(self, *keys: str) -> None:
        """Press keys, one after another, such as `Control+K`."""
        for each in keys:
            self._do("press", keys=each)

    def type(self, text: str) -> None:
        """Type."""
        self._do("type", text=text)

    def evaluate(self, script: str, argument: object = None) -> Any:
        """Return the value of a function of JavaScript; a promise is awaited."""
        return self._do("evaluate", script=script, argument=argument)

    def size(self, width: int, height: int) -> None:
        """Change the size of the window."""
        self._do("size", width=width, height=height)

    def colours(self, scheme: str) -> None:
        """Have the system of the person prefer `light` or `dark` colours."""
        self._do("colours", scheme=scheme)

    def barriers(self) -> list[str]:
        """Return what axe-core finds against WCAG 2.2 at the levels A and AA, when nothing is being read any more."""
        self.miss("main .spinner")
        return [str(each) for each in self._do("axe", standards=STANDARDS)]

    def small_picture(self, path: Path, quality: int = 60) -> None:
        """Take a picture as WebP, which a repository can hold, when nothing is being read any more."""
        self.miss("main .spinner")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._do("small", path=str(path), quality=quality)

    def picture(self, path: Path) -> None:
        """Take a picture, when nothing is being read any more."""
        self.miss("main .spinner")
        self._do("picture", path=str(path))

    def popup(self, selector: str) -> "Page":
        """Click, and return the window that opens."""
        return Page(self.browser, self._do("popup", selector=selector))

    def close(self) -> None:
        """Close the window."""
        self._do("close")

    def clipboard(self) -> str:
        """Return the text that was copied."""
        return str(self._do("clipboard"))

    def download(self, selector: str) -> Path:
        """Click, and return the file that the browser saves."""
        return Path(self._do("download", selector=selector))
