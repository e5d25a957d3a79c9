"""Every command has a parser apart from its work: completion, man pages and the reference are made of these."""

import io
import os
import socket
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import NoReturn

import pytest

from paddock.app.main import COMMANDS, GROUPS
from paddock.base.errors import PaddockError
from paddock.cli import arguments, main, terminal
from paddock.cli.arguments import HelpRequested, KnownNames
from paddock.cli.commandtree import CommandEntry, walk
from paddock.cli.console import Console
from paddock.cli.terminal import Screen
from paddock.cli.verbs import VerbsParser

ENTRIES = {entry.name: entry for entry in walk(main.every(COMMANDS))}
# A module may read what it needs when it is loaded; making a parser may not.
MADE = {name: entry.parser() for name, entry in ENTRIES.items()}
# A slow machine under load takes a few times of what is usual, a connection or a process takes longer still.
QUICK_SECONDS = 0.5


def help_of(*words: str) -> str:
    out = io.BytesIO()
    assert main.run([*words], Console(out, io.BytesIO()), COMMANDS, GROUPS) == 0
    return out.getvalue().decode()


@pytest.fixture
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a parser may not do."""
    done: list[str] = []

    def refuse(name: str) -> object:
        return lambda *_, **__: done.append(name)

    for owner, name in ((socket.socket, "connect"), (subprocess, "Popen"), (sqlite3, "connect"), (os, "mkdir"), (os, "unlink")):
        monkeypatch.setattr(owner, name, refuse(name))
    for name in ("mkdir", "write_text", "write_bytes", "read_text", "read_bytes", "unlink"):
        monkeypatch.setattr(Path, name, refuse(name))
    return done


@pytest.mark.parametrize("name", ENTRIES)
def test_a_parser_is_made_and_nothing_else(name: str, nothing_else: list[str]) -> None:
    entry, made = ENTRIES[name], MADE[name]
    began = time.thread_time()
    again = entry.parser()
    assert time.thread_time() - began < QUICK_SECONDS
    assert again is not made, "a parser belongs to the one who asks for it"
    assert again.help_text() == made.help_text()
    assert nothing_else == []


@pytest.mark.parametrize("name", ENTRIES)
def test_a_parser_is_called_as_its_command(name: str) -> None:
    made = ENTRIES[name].parser()
    with pytest.raises(HelpRequested, match=r"^usage: paddock "):
        made.parse_args(["--help"])
    assert made.prog == f"paddock {name}"


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("name", ENTRIES)
def test_the_help_of_a_command_is_its_parsers_and_loads_no_command(name: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "current", lambda: Screen(columns=columns))
    with pytest.raises(HelpRequested) as own:
        ENTRIES[name].parser().parse_args(["--help"])
    if not isinstance(MADE[name], VerbsParser):
        monkeypatch.setattr(main, "import_module", None)
    assert help_of(*ENTRIES[name].words, "--help") == help_of(*ENTRIES[name].words, "-h") == str(own.value)


@pytest.mark.parametrize("line", ["exec web -- ls --help", "ls --all-namespaces -h", "image list --help", "up --help-all"])
def test_a_help_between_other_words_is_the_commands(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load(module: str) -> NoReturn:
        loaded.append(module)
        raise PaddockError("loaded")

    monkeypatch.setattr(main, "import_module", load)
    assert main.run(line.split(), Console(io.BytesIO(), io.BytesIO()), COMMANDS, GROUPS) == 2
    assert loaded == [ENTRIES[line.split()[0]].module]


@pytest.mark.parametrize("name", ENTRIES)
def test_what_completes_a_value_is_known(name: str) -> None:
    for action in ENTRIES[name].parser()._actions:
        found = arguments.completion(action)
        assert isinstance(found, KnownNames) or all(isinstance(word, str) for word in found)


def test_summaries_are_short_and_the_tree_has_the_verbs() -> None:
    assert all(len(entry.summary) <= 60 for entry in ENTRIES.values())
    assert {"up", "why", "image", "image pull", "provider serve"} < set(ENTRIES)
    assert CommandEntry(("image",), *COMMANDS["image"]).verbs()


def test_the_help_for_experts_has_every_option() -> None:
    made = ENTRIES["up"].parser()
    assert help_of("up", "--help-all") == made.help_text()
    assert "--oidc-issuer-url" in made.help_text()
    assert "--oidc-issuer-url" not in made.format_help()
