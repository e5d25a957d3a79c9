"""Words of other tools: the answer names the command, or the line that does it."""

import pytest

from paddock.app.main import COMMANDS
from paddock.cli import main, synonyms
from tests.unit.cli.commands import paddock

KNOWN = {**main.COMMANDS, **COMMANDS}


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (["list"], "it is `paddock ls` here"),
        (["ps", "-a"], "it is `paddock ls` here"),
        (["describe", "my vm"], "it is `paddock info 'my vm'` here"),
        (["reboot", "web", "--force"], "it is `paddock restart web` here"),
        (["migrate", "web"], "use `virtctl migrate NAME`"),
        (["strat"], 'did you mean "start"?'),
        (["frobnicate"], "`paddock help` lists the commands"),
    ],
)
def test_unknown_commands(given: list[str], answer: str) -> None:
    found = paddock(*given)
    assert (found.code, found.out, found.err) == (2, "", f'paddock: unknown command "{given[0]}"; {answer}\n')


def test_a_command_is_no_synonym() -> None:
    assert KNOWN.keys() & synonyms.SYNONYMS.keys() == set()


def test_a_missing_command_is_answered_with_a_line() -> None:
    assert synonyms.hint("shell", [], {}) == "use `virtctl ssh USER@vm/NAME`"
    assert synonyms.hint("shell", ["web"], {"ssh": ""}) == "it is `paddock ssh web` here"
    assert all("`" not in line for line in synonyms.ELSEWHERE.values())
