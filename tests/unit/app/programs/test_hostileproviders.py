"""Hostile Providers of a real server: newcomers are answered, one can be deleted, memory is bounded, and SIGTERM ends the server.

`make soak` tries every kind in plain text and in TLS, and prints the figures.
"""

import random
from pathlib import Path

import pytest

from tests.kit.hostile import hostileproviders
from tests.kit.hostile.hostilepeers import FLOODS, KINDS

_SEED = 20261128
# Buffers of the connections, and what h2 keeps of them.
_MOST_MIB = 64
_SAMPLE = [(kind, random.Random(_SEED).random() < 0.5) for kind in random.Random(_SEED).sample(FLOODS, 2)]


def judged(folder: Path, kind: str, *, tls: bool) -> None:
    found = hostileproviders.measure(folder, kind, tls=tls, environment={})
    print(f"| {kind} | {'TLS' if tls else 'plain'} | {found.row} |")
    assert found.grown < _MOST_MIB
    assert found.code == 0


@pytest.mark.spec("virtrigaud", 163, 166, 167)
@pytest.mark.parametrize(("kind", "tls"), _SAMPLE)
def test_some_kinds(tmp_path: Path, kind: str, tls: bool) -> None:
    judged(tmp_path, kind, tls=tls)


@pytest.mark.soak
@pytest.mark.spec("virtrigaud", 163, 166, 167)
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(tmp_path: Path, kind: str, tls: bool) -> None:
    judged(tmp_path, kind, tls=tls)
