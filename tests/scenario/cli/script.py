"""Command scripts: what a user types, and what the program answers.

A script holds lines `$ paddock ...`; below each stands what it wrote: standard output as it is, standard error behind `!`, and the
exit code when it is not 0. Commands run in the script's own folder; `|` hands one command's output to the next.
"""

import io
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from paddock.cli.console import Console
from paddock.cli.main import run

PROMPT = "$ paddock "


def replay(script: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The script with the answers of today."""
    monkeypatch.chdir(script.parent)
    text = script.read_text(encoding="utf-8")
    return "".join(_answers(text, monkeypatch))


def _answers(text: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith("# "):
            yield f"{line}\n"
        elif line.startswith(PROMPT):
            yield f"{line}\n{_run(line, monkeypatch)}"


def _run(line: str, monkeypatch: pytest.MonkeyPatch) -> str:
    handed = b""
    told = ""
    code = 0
    for command in line.removeprefix("$ ").split(" | "):
        program, *arguments = shlex.split(command)
        assert program == "paddock", command
        out, err = io.BytesIO(), io.BytesIO()
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(handed)))
        code = run(arguments, Console(out, err))
        handed = out.getvalue()
        told += "".join(f"! {each}\n" for each in err.getvalue().decode().splitlines())
    return handed.decode() + told + (f"exit {code}\n" if code else "") + "\n"
