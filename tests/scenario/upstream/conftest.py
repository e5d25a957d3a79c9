"""Replicas of KubeVirt's own tests, on a whole host in virtual time; tests/upstream/README.md tells which stands for which."""

from collections.abc import Callable
from pathlib import Path

import pytest

from paddock.kubernetes.schema.kind import AdmissionSettings
from tests import virtualtime
from tests.kit.engine.fakehost import FakeHost
from tests.scenario.hosts.conftest import Play, Script, play

__all__ = ["Gated", "Play", "Script", "play"]
Gated = Callable[[Script, str], float]


@pytest.fixture
def gated(tmp_path: Path) -> Gated:
    """Runs a script with a fresh host on which a feature gate is open."""

    def run(script: Script, gate: str) -> float:
        async def inside() -> None:
            async with FakeHost(tmp_path, AdmissionSettings(gates=frozenset({gate}))) as host:
                await script(host)

        return virtualtime.run(inside())

    return run
