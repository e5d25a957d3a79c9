"""The program: commands, help, exit codes, and what becomes of errors."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from paddock.cli import main, terminal
from paddock.cli.exits import FINDINGS, GOOD, LOSSES, UNUSABLE
from tests.unit.cli.commands import paddock

PROGRAM = [sys.executable, "-c", "import sys; from paddock.cli.main import main; sys.exit(main())"]
GOOD_FILE = "apiVersion: vitistack.io/v1alpha1\nkind: Machine\nmetadata: {name: a}\nspec: {template: small}\n"
BAD_FILE = GOOD_FILE.replace("template", "templat")
WARNED_FILE = GOOD_FILE.replace("small}", "small, networks: [{name: eth0, networkName: lan}]}")
LOSSY_FILE = """
apiVersion: infrastructure.stakater.com/v1
kind: VirtualMachine
metadata: {name: a}
spec: {claimRef: {name: x}}
"""


@pytest.mark.parametrize(
    ("arguments", "text", "code"),
    [
        (["validate", "-f"], GOOD_FILE, GOOD),
        (["validate", "-f"], WARNED_FILE, GOOD),
        (["validate", "--strict", "-f"], WARNED_FILE, FINDINGS),
        (["validate", "-f"], BAD_FILE, FINDINGS),
        (["validate", "-f"], GOOD_FILE + "---\na: [", UNUSABLE),
        (["render", "-f"], GOOD_FILE, GOOD),
        (["render", "-f"], BAD_FILE, FINDINGS),
        (["render", "-f"], LOSSY_FILE, GOOD),
        (["render", "--strict", "-f"], LOSSY_FILE, LOSSES),
        (["render", "-f"], "a: [", UNUSABLE),
        (["convert", "--to", "kubevirt", "--strict", "-f"], LOSSY_FILE, LOSSES),
        (["convert", "--to", "vitistack", "--strict", "-f"], LOSSY_FILE, LOSSES),
        (["convert", "--to", "vitistack", "-f"], GOOD_FILE, GOOD),
        (["convert", "--to", "vitistack", "-f"], BAD_FILE, FINDINGS),
    ],
)
def test_exit_codes(arguments: list[str], text: str, code: int, tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(text)
    assert paddock(*arguments, str(file)).code == code


@pytest.mark.parametrize(
    ("old", "new", "diff", "plan"),
    [
        (GOOD_FILE, GOOD_FILE, GOOD, GOOD),
        (GOOD_FILE, GOOD_FILE.replace("small", "medium"), FINDINGS, GOOD),
        # a root disk that shrinks is refused
        (GOOD_FILE.replace("small", "medium"), GOOD_FILE, FINDINGS, FINDINGS),
        (GOOD_FILE, BAD_FILE, FINDINGS, FINDINGS),
        (GOOD_FILE, "a: [", UNUSABLE, UNUSABLE),
    ],
)
def test_exit_codes_of_comparisons(old: str, new: str, diff: int, plan: int, tmp_path: Path) -> None:
    before, after = tmp_path / "old.yaml", tmp_path / "new.yaml"
    before.write_text(old)
    after.write_text(new)
    assert paddock("diff", "-f", str(before), "-f", str(after)).code == diff
    assert paddock("plan", "-f", str(after), "--against", str(before)).code == plan


@pytest.mark.parametrize("command", main.COMMANDS)
def test_every_command_has_help(command: str) -> None:
    answer = paddock(command, "--help")
    assert answer.code == GOOD
    assert answer.out.startswith(f"usage: paddock {command} ")
    # Commands with verbs leave the codes to these.
    assert "exit codes:\n  0  " in answer.out or "\ncommands:\n" in answer.out
    assert paddock("help", command) == answer


def test_help_lists_every_command() -> None:
    for arguments in (["help"], ["--help"], ["-h"]):
        answer = paddock(*arguments)
        assert answer.code == GOOD
        assert all(f"  {command} " in answer.out for command in main.COMMANDS)
    # As kubectl and docker do: nothing was wrong.
    assert paddock() == paddock("help")


@pytest.mark.parametrize(("columns", "least", "most"), [(0, 70, 80), (40, 50, 60), (100, 90, 100), (300, 100, 120)])
def test_a_help_fits_the_terminal(columns: int, least: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "current", lambda: terminal.Screen(interactive=bool(columns), columns=columns))
    widest = max(map(len, paddock("validate", "--help").out.splitlines()))
    assert least < widest <= most


def test_the_version() -> None:
    assert paddock("--version") == paddock("version")
    assert paddock("--version").out.startswith("paddock 0.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["valdate"], 'paddock: unknown command "valdate"; did you mean "validate"?'),
        (["xyz"], 'paddock: unknown command "xyz"; `paddock help` lists the commands'),
        (["validate"], "paddock: name at least one input: -f FILE, -f DIRECTORY or -f -; see `paddock validate --help`"),
        (
            ["render", "-f", "x", "-o", "xml"],
            'paddock: argument -o/--output: "xml" is none of text, json, yaml; see `paddock render --help`',
        ),
        (["render", "--tarlget", "seed", "-f", "x"], "paddock: unrecognized arguments: --tarlget"),
        (["diff", "-f", "a"], "paddock: name two inputs: paddock diff OLD NEW"),
        (["explain"], "paddock: the following arguments are required: KIND[.field.path]"),
    ],
)
def test_a_wrong_command_line(arguments: list[str], said: str) -> None:
    answer = paddock(*arguments)
    assert (answer.code, answer.out) == (UNUSABLE, "")
    assert answer.err.startswith(said)
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_running_out_of_room_is_one_line(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(main, "_call", fail)
    answer = paddock("validate")
    assert answer.code == UNUSABLE
    assert answer.err == "paddock: an input is too large or too deeply nested to be handled; split it\n"


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*PROGRAM, "crds"], stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (GOOD, b"")


def test_an_interrupt_is_no_traceback() -> None:
    # Shells start background jobs with interrupts ignored; the program is to see them all the same.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    command = [*PROGRAM, "validate", "-f", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heard) as process:
        assert process.stdin is not None and process.stderr is not None
        # The program has started once it has taken more than a pipe holds.
        process.stdin.write(b"#" * 2_000_000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        # A signal that comes just before the read is seen when that returns.
        process.stdin.close()
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == b""


def test_the_answer_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(GOOD_FILE + "---\n" + WARNED_FILE.replace("name: a", "name: b").replace("template", "templat"))
    said = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([*PROGRAM, "validate", "-f", str(file)], capture_output=True, env=environment, timeout=60, check=False)
        said.add(done.stdout + done.stderr)
    assert len(said) == 1


def test_a_terminal_without_utf8(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(GOOD_FILE.replace("small", "größe"))
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*PROGRAM, "validate", "-f", str(file)], capture_output=True, env=environment, timeout=60, check=False)
    assert "größe" in done.stdout.decode()
    assert done.returncode == GOOD


HEAVY = {"asyncio", "rich", "socket", "ssl", "subprocess", "email", "http", "unittest", "dataclasses", "xml", "sqlite3", "orjson"}


def loaded_by(*words: str) -> set[str]:
    code = "import sys; from paddock.app.main import main; main(); print(*sorted(sys.modules), sep='\\n', file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, timeout=60, check=True)
    return set(done.stderr.decode().split())


@pytest.mark.parametrize("words", ["help", "__complete mo", "__complete move --", "__complete up --network r", "__complete disk "])
def test_help_and_completion_load_no_command(words: str) -> None:
    loaded = loaded_by(*words.split(" "))
    assert not loaded & HEAVY
    assert not {each for each in loaded if each.startswith(("paddock.cli.commands", "paddock.app.commands"))}
    assert words != "help" or "argparse" not in loaded


@pytest.mark.parametrize("command", ["validate", "render"])
def test_what_a_short_command_does_not_load(command: str, tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(GOOD_FILE)
    loaded = loaded_by(command, "-f", str(file))
    assert not loaded & HEAVY
    assert "paddock.dialects.virtrigaud.kinds.virtualmachine" not in loaded
    assert "paddock.dialects.stakater.kinds.virtualmachine" not in loaded
    assert command == "render" or "paddock.dialects.translators" not in loaded
