"""The commands that `paddock why` advises exist, with the options that it names."""

import io
import re
from pathlib import Path

import paddock.fleet.diagnosis
from paddock.app.main import COMMANDS
from paddock.cli import main
from paddock.cli.console import Console

RULES = Path(paddock.fleet.diagnosis.__file__).with_name("rules.toml").read_text()
# The rest of the sentence is the command's as far as its words are options, names in capitals or braces.
_ADVICE = re.compile(r"\bpaddock ([a-z]+)((?: +(?:--[a-z-]+|[A-Z/]+|\{[a-z]+\}|[a-z]+/\{[a-z]+\}|[a-z]+))*)")


def help_of(command: str) -> str:
    out = io.BytesIO()
    assert main.run([command, "--help-all" if command == "up" else "--help"], Console(out, io.BytesIO()), COMMANDS) == 0
    return out.getvalue().decode()


def test_commands_and_options_of_fixes_exist() -> None:
    advised = {(command, option) for command, rest in _ADVICE.findall(RULES) for option in ["", *re.findall(r"--[a-z-]+", rest)]}
    assert {"image", "status", "why"} <= {command for command, _ in advised}
    for command, option in sorted(advised):
        assert option in help_of(command), (command, option)
