"""An error says what, why and what to do, and whether trying again can help."""

import pytest

from paddock.base.errors import PaddockError, Terminal, Transient


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Terminal("cannot start"), "cannot start"),
        (Terminal("cannot start", why="no disk"), "cannot start: no disk"),
        (Transient("cannot start", fix="wait"), "cannot start; wait"),
        (Transient("cannot start", why="no disk", fix="add one"), "cannot start: no disk; add one"),
    ],
)
def test_the_text_has_its_parts(error: PaddockError, text: str) -> None:
    assert str(error) == text
    assert isinstance(error, Transient) != isinstance(error, Terminal)
