"""Scripts of the fake driver: TOML and JSON, and what is wrong with one."""

from pathlib import Path

import pytest

from paddock.contract.errors import ErrorKind
from paddock_drivers.fake import settings
from paddock_drivers.fake.settings import BadScript, FakeSettings, RpcFault, SecondsRange

TOML = """
seed = 7
tasks = "sync"
without = ["linked_clones"]

[task_seconds]
least = 1
most = 2

[[faults]]
rpc = "Create"
kind = "QuotaExceeded"
count = 0
"""
JSON = (
    '{"seed":7,"tasks":"sync","without":["linked_clones"],"task_seconds":{"least":1,"most":2},'
    '"faults":[{"rpc":"Create","kind":"QuotaExceeded","count":0}]}'
)


@pytest.mark.parametrize(("name", "text"), [("script.toml", TOML), ("script.json", JSON)])
def test_both_forms_say_the_same(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    fault = RpcFault(rpc="Create", kind=ErrorKind.QUOTA_EXCEEDED, count=0)
    wanted = FakeSettings(seed=7, tasks="sync", without=("linked_clones",), task_seconds=SecondsRange(1, 2), faults=(fault,))
    assert settings.read(path) == wanted


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seed = ", "Invalid value"),
        ("sed = 1", "unknown field `sed`"),
        ('tasks = "slow"', "Invalid enum value"),
        ("[[faults]]\nkind = 'Unavailable'", "missing required field `rpc`"),
        ("[[faults]]\nrpc = 'Create'\nprobability = 2", "<= 1"),
        ("[[faults]]\nrpc = 'Create'\nkind = 'Odd'", "Invalid enum value"),
    ],
)
def test_a_mistake_is_named(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "script.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadScript, match=words):
        settings.read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadScript, match="No such file"):
        settings.read(tmp_path / "none.toml")
