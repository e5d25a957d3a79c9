"""The server is killed at random moments, under load, and nothing that it has acknowledged is ever lost.

`make test` does a few moments, always the same. `make soak` does a thousand, in rounds; the seed of a round is in the name of its
test. See docs/contribute/soak.md for how to repeat or to continue them.
"""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.scenario.chaos.chaos import Chaos

ROUNDS, MOMENTS = 50, 20
_DONE = Path(__file__).resolve().parents[3] / ".cache" / "chaos"
# Another one each day; the same for all processes of a run.
_FIRST = int(os.environ.get("PADDOCK_CHAOS_SEED") or datetime.now(UTC).toordinal() * 1000)


def play(folder: Path, seed: int, moments: int) -> None:
    chaos = Chaos(folder / "server", seed)
    try:
        asyncio.run(chaos.run(moments))
    finally:
        chaos.server.finish()
    # Otherwise nothing was proven.
    assert chaos.answers > 5 * moments
    assert chaos.resumed > 1


@pytest.mark.spec("kube-api", 66, 67, 98)
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost(tmp_path: Path, seed: int) -> None:
    play(tmp_path, seed, 5)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + ROUNDS))
def test_nothing_acknowledged_is_ever_lost(tmp_path: Path, seed: int) -> None:
    done = _DONE / str(seed)
    if os.environ.get("PADDOCK_CHAOS_RESUME") and done.exists():
        pytest.skip("passed before")
    play(tmp_path, seed, MOMENTS)
    _DONE.mkdir(parents=True, exist_ok=True)
    done.touch()
