"""The Tab key in real shells, at a pseudo-terminal: what stands on the line after it."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.cli.commands.completion import SHELLS, script

PATIENCE = 30.0
# The command that starts a shell, and the first line that it reads.
STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source {script}; bind 'set enable-bracketed-paste off'"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -d {folder}/dump; source {script}"),
    "fish": (["fish", "--no-config", "-i"], "source {script}"),
}
_CONTROL = re.compile(rb"\x1b(\[[0-9;?>=]*[a-zA-Z]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|.)|[\r\x07\x0f]|.\x08")


class ShellTerminal:
    """A shell at a pseudo-terminal."""

    def __init__(self, shell: str, folder: Path) -> None:
        program, first = STARTS[shell]
        target = folder / f"paddock.{shell}"
        target.write_text(script(shell))
        own, other = pty.openpty()
        environment = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "HOME": str(folder),
            "TERM": "xterm",
            "LANG": "C.UTF-8",
            "COLUMNS": "200",
            "PADDOCK_DIR": str(folder / "none"),
        }
        subprocess.run(["stty", "cols", "200", "rows", "50"], stdin=other, check=True)
        self._terminal = own
        self._child = subprocess.Popen(["setsid", "--ctty", *program], stdin=other, stdout=other, stderr=other, env=environment, cwd=folder)
        os.close(other)
        try:
            self.type(first.format(script=target, folder=folder) + "; echo rea''dy\r")
            self.wait_for("ready")
        except BaseException:
            self.close()
            raise

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, text: str) -> None:
        """Read until the text is there."""
        seen, end = b"", time.monotonic() + PATIENCE
        while text.encode() not in _CONTROL.sub(b"", seen):
            assert time.monotonic() < end, f"no {text!r} in {seen!r}"
            if select.select([self._terminal], [], [], 0.2)[0]:
                seen += os.read(self._terminal, 65536)

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        os.close(self._terminal)


@pytest.fixture(params=SHELLS)
def terminal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ShellTerminal]:
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param} on this host: apt install {request.param}")
    program = tmp_path / "paddock"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m paddock.app "$@"\n')
    program.chmod(0o755)
    (tmp_path / "some-manifest.yaml").write_text("")
    (tmp_path / "some-folder").mkdir()
    made = ShellTerminal(request.param, tmp_path)
    yield made
    made.close()


LINES = (
    ("paddock valid", "paddock validate"),
    ("paddock image bui", "paddock image build"),
    ("paddock up --network rou", "paddock up --network routed"),
    ("paddock up --network=rou", "paddock up --network=routed"),
    ("paddock validate -f some-m", "paddock validate -f some-manifest.yaml"),
    ("paddock status --dir some-", "paddock status --dir some-folder/"),
)


def test_tab(terminal: ShellTerminal) -> None:
    for line, completed in LINES:
        # Ctrl+U clears the line.
        terminal.type(f"\x15{line}\t")
        terminal.wait_for(completed)
    # More keys list what may come.
    terminal.type("\x15paddock image pu\t\t")
    terminal.wait_for("push")
