"""A test of a long suite that skips itself says what the machine lacks, in the words that the gate reads."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.machine import NEEDS
from tools.gate import verdict

TESTS = Path(__file__).parents[1]
FILES = [path for suite in ("host", "reference", "scenario/fronts") for path in sorted((TESTS / suite).rglob("*.py"))]
# "needs kvm: there is no /dev/kvm"; a name between braces is one that a table gives.
REASON = re.compile(r"needs (\{\}|[\w-]+): ")


def reasons(text: str) -> Iterator[str]:
    """Yield the reasons of all skips in a module, with {} for what is put in."""
    for node in ast.walk(ast.parse(text)) if "skip" in text else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("skip", "skipif", "importorskip"):
            own = node.args[:1] if node.func.attr == "skip" else []
            for said in (*own, *(each.value for each in node.keywords if each.arg == "reason")):
                parts = said.values if isinstance(said, ast.JoinedStr) else [said]
                yield "".join(part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "{}" for part in parts)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('pytest.skip("needs go: it builds")', "needs go: it builds"),
        ('pytest.skip(f"needs {need}: {why}")', "needs {}: {}"),
        ("pytest.skip(why)", "{}"),
        ('@pytest.mark.skipif(not GO, reason="there is no Go")\ndef test(): ...', "there is no Go"),
        ('pytest.importorskip("libvirt", reason="needs libvirtd: no library")', "needs libvirtd: no library"),
    ],
)
def test_reasons_are_found(text: str, said: str) -> None:
    assert list(reasons(text)) == [said]


def test_each_skip_names_what_the_machine_lacks() -> None:
    found = {(path, said) for path in FILES for said in reasons(path.read_text(encoding="utf-8"))}
    wrong = {f"{path.relative_to(TESTS)}: {said}" for path, said in found if not REASON.match(said) and not said.startswith(verdict.SLOW)}
    assert found and not wrong, 'write pytest.skip("needs NAME: why")'


def test_what_the_gate_excuses_is_what_tests_name() -> None:
    named = {match[1] for path in FILES for said in reasons(path.read_text(encoding="utf-8")) if (match := REASON.match(said))}
    assert set(verdict.read_policy(TESTS / "gate.toml").absent) <= named | set(NEEDS)
