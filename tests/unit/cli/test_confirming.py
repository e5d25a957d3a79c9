"""Questions before a change."""

import io

import pytest

from paddock.cli import confirming
from paddock.cli.console import Console


@pytest.mark.parametrize(("answer", "agreed"), [("y\n", True), ("Yes\n", True), ("\n", False), ("n\n", False), ("", False)])
def test_a_person_is_asked_on_standard_error(answer: str, agreed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = io.BytesIO(), io.BytesIO()
    monkeypatch.setattr(confirming, "answerable", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert confirming.agreed(Console(out, err), "Change it?", yes=False) is agreed
    assert (out.getvalue(), err.getvalue()) == (b"", b"Change it? [y/N] ")


def test_nobody_is_asked_without_a_terminal_or_with_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    err = io.BytesIO()
    monkeypatch.setattr(confirming, "answerable", lambda: False)
    assert not confirming.agreed(Console(io.BytesIO(), err), "Change it?", yes=False)
    assert confirming.agreed(Console(io.BytesIO(), err), "Change it?", yes=True)
    assert err.getvalue() == b""
