"""The host as a Node, with the real kubectl: Ready with a heartbeat, closed and opened, tainted and labelled."""

import time
from pathlib import Path

import orjson
import pytest

from tests.reference.build import Binaries
from tests.reference.client import Kubectl
from tests.reference.embedded import serving

pytestmark = pytest.mark.reference


@pytest.mark.spec("kube-api", 119)
def test_the_host_is_a_node_for_kubectl(binaries: Binaries, tmp_path: Path) -> None:
    with serving(tmp_path / "server") as server:
        kubectl = Kubectl(binaries.kubectl, server.access, tmp_path / "home")

        def said(*arguments: str) -> str:
            ran = kubectl.run(*arguments)
            assert ran.code == 0, ran.errors
            return ran.output

        name = said("get", "nodes", "-o", "name").strip().removeprefix("node/")

        def status() -> str:
            return said("get", "nodes", "--no-headers").split()[1]

        assert status() == "Ready"
        assert said("cordon", name) == f"node/{name} cordoned\n"
        assert status() == "Ready,SchedulingDisabled"
        assert said("uncordon", name) == f"node/{name} uncordoned\n"
        assert status() == "Ready"
        assert said("taint", "nodes", name, "dedicated=lab:NoSchedule") == f"node/{name} tainted\n"
        assert "dedicated=lab:NoSchedule" in said("describe", "node", name)
        assert said("taint", "nodes", name, "dedicated-") == f"node/{name} untainted\n"
        assert said("label", "node", name, "rack=3") == f"node/{name} labeled\n"
        assert said("get", "nodes", "-l", "rack=3", "-o", "name") == f"node/{name}\n"
        described = said("describe", "node", name)
        assert f"HolderIdentity:  {name}" in described
        first = renewed(said("get", "lease", name, "-n", "kube-node-lease", "-o", "json"))
        # The one test that waits: a heartbeat is what happens by itself.
        end = time.monotonic() + 30
        while renewed(said("get", "lease", name, "-n", "kube-node-lease", "-o", "json")) == first:
            assert time.monotonic() < end, "no heartbeat within 30 s"
            time.sleep(0.5)
        assert "rack=3" in said("get", "node", name, "--show-labels")


def renewed(lease: str) -> str:
    return str(orjson.loads(lease)["spec"]["renewTime"])
