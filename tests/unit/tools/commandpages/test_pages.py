"""The man pages and the reference name every command and option, and programs that read man pages have no complaint."""

import argparse
import shutil
import subprocess
from pathlib import Path

import pytest

from paddock.app.main import COMMANDS
from paddock.cli import main
from paddock.cli.commandtree import walk
from paddock.cli.verbs import VerbsParser
from tools.commandpages import man, markdown

ENTRIES = {entry.name: entry for entry in walk(main.every(COMMANDS))}
PAGES = man.pages()
REFERENCE = markdown.page()


def options_of(name: str) -> list[str]:
    parser = ENTRIES[name].parser()
    if isinstance(parser, VerbsParser):
        return []
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return [option for action in actions for option in action.option_strings]


@pytest.mark.parametrize("name", ENTRIES)
def test_every_option_has_its_place(name: str) -> None:
    page = PAGES[f"paddock-{name.replace(' ', '-')}.1"]
    section = REFERENCE.split(f"\n## paddock {name}\n")[1].split("\n## ")[0]
    for option in options_of(name):
        assert man.escape(option) in page
        assert option in section


def test_the_programs_page_names_every_command() -> None:
    for name in main.every(COMMANDS):
        assert f".BR paddock\\-{man.escape(name)} (1)" in PAGES["paddock.1"]


def test_words_of_roff_are_text() -> None:
    assert man.escape(".TH a\\b 'c' --d") == "\\&.TH a\\eb 'c' \\-\\-d"


@pytest.mark.parametrize("program", [["mandoc", "-Tlint", "-Wwarning"], ["groff", "-ww", "-man", "-Tutf8", "-z"]], ids=["mandoc", "groff"])
def test_man_pages_have_no_warnings(program: list[str], tmp_path: Path) -> None:
    if shutil.which(program[0]) is None:
        pytest.skip(f"there is no {program[0]} on this host: apt install {program[0]}")
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run([*program, *sorted(PAGES)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
