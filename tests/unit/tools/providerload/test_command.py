"""``python -m tools.providerload``: figures as text and as JSON, and exit codes that say what came of it."""

import io
import json
import socket
from pathlib import Path

import pytest

from paddock.base.errors import UsageError
from paddock.cli.console import Console
from tools.providerload import __main__ as providerload

FAST = "[task_seconds]\nleast = 0.001\nmost = 0.01\n"
FULL = f'{FAST}\n[[faults]]\nrpc = "Create"\nkind = "QuotaExceeded"\nmessage = "full"\ncount = 0\n'


def load(script: Path, text: str, *more: str) -> tuple[int, str]:
    script.write_text(text, encoding="utf-8")
    out = io.BytesIO()
    code = providerload.run(["--driver", "fake", "--script", str(script), *more], Console(out, io.BytesIO()))
    return code, out.getvalue().decode()


def test_the_figures_of_a_load(tmp_path: Path) -> None:
    given = ("--machines", "6", "--concurrency", "3")
    code, out = load(tmp_path / "fake.toml", FAST, *given, "-o", "json")
    assert code == 0 and {each["operation"]: each["count"] for each in json.loads(out)["operations"]}["delete"] == 12
    code, out = load(tmp_path / "fake.toml", FAST, *given)
    assert code == 0 and out.splitlines()[0].split()[:4] == ["OPERATION", "COUNT", "ERRORS", "PER"]


def test_a_load_that_fails_says_so(tmp_path: Path) -> None:
    code, out = load(tmp_path / "fake.toml", FULL, "--machines", "2")
    assert code == 1 and "error, 2 times: create: full" in out


def test_a_provider_that_is_not_there_cannot_be_measured() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    assert providerload.run(["--address", address], Console(io.BytesIO(), io.BytesIO())) == 2


def test_an_unknown_operation_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown operation levitate"):
        load(tmp_path / "fake.toml", FAST, "--operation", "levitate")
