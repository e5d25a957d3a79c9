"""Events and conditions of controllers are those of the reference."""

import pytest

from tests.kit.reported import reported_words

__all__ = ["reported_words"]


@pytest.fixture(autouse=True)
def _declared(reported_words: None) -> None:
    """Guard every test of this folder."""
