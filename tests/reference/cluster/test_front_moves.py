"""Machines of Vitistack and Stakater between `paddock up` and a cluster, where `paddock operator` serves their dialects."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from tests.host.conftest import work
from tests.host.guests import registry, tiny_disk_image
from tests.host.moves.conftest import MARKER
from tests.host.moves.test_fronts import STAKATER, VITISTACK, catalogue, catalogue_of, stakater, vitistack
from tests.reference.client import MERGE_PATCH
from tests.reference.cluster import test_fronts
from tests.reference.cluster.moving import OF_MOVES, Between, between, until
from tests.reference.cluster.test_fronts import Front, served
from tests.reference.operators.running import Operator, operating
from tests.reference.virtctl.conftest import INSTANCES, MACHINES

# Fixtures that pytest finds here.
__all__ = ["between", "registry", "tiny_disk_image", "work"]
pytestmark = [pytest.mark.reference, pytest.mark.soak]
_DIALECTS = ("stakater", "vitistack")
_LEASES = [f"lease/paddock-operator-{each}" for each in _DIALECTS]
_FILLED = "/apis/cdi.kubevirt.io/v1beta1/namespaces/images/datavolumes/tiny"


@pytest.fixture
def operator(between: Between, tmp_path: Path) -> Iterator[Operator]:
    """The operator of both dialects, which leads."""
    kubectl = between.cluster.kubectl
    for each in _DIALECTS:
        made = subprocess.run([sys.executable, "-m", "paddock.app", "crds", "--dialect", each], capture_output=True, text=True, check=True)
        kubectl.ok("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=made.stdout)
    words = [word for each in _DIALECTS for word in ("--dialect", each)]
    access = between.cluster.machine.directory / "kubeconfig"
    with operating(access, tmp_path / "log", *words, "--namespace=default", "--reconcile-interval=5s") as running:
        running.wait_ready()
        running.wait(lambda: running.leads)
        try:
            yield running
        finally:
            # What a test that failed has left goes while somebody takes the finalizers off.
            kubectl.run("delete", "machines.vitistack.io,virtualmachines.infrastructure.stakater.com", "--all", "--timeout=100s")
    kubectl.run("delete", *_LEASES)


def _there_and_back(between: Between, word: str, path: str, front: Front) -> None:
    """Move a guest to the cluster and back, and try everything there that could start it again."""
    cluster = between.cluster
    between.on_host(f"echo {MARKER} > /dev/vdb; sync")
    with between.one_at_a_time():
        planned = between.there.run(word, "--dry-run")
        assert planned.returncode == 0 and "interface default: its MAC address changes" in planned.stderr, planned.stderr
        assert "moved to namespace default" in between.there.good(word)
        assert between.on_cluster("head -n1 /dev/vdb") == MARKER
        between.on_cluster("echo written on the cluster | dd of=/dev/vdb seek=1 bs=512; sync")
        assert "moved to namespace default" in between.back.good(word, "--replace")
        assert between.on_host("head -n1 /dev/vdb") == MARKER
        assert between.on_host("dd if=/dev/vdb skip=1 bs=512 count=1 2>/dev/null | head -n1") == "written on the cluster"
        cluster.virtctl.run("start", "web")
        # The operator changes its machine, and leaves the selector alone.
        assert cluster.api.request("PATCH", path, front.change, headers=MERGE_PATCH).ok
        until(lambda: front.changed(cluster.get(f"{MACHINES}/web")))
        assert cluster.get(f"{MACHINES}/web")["spec"]["template"]["spec"]["nodeSelector"]["paddock.dev/fence"] == "moved"
        assert between.guests()[1] == []
        cluster.virtctl.run("stop", "web", "--force", "--grace-period=0")
        until(lambda: not cluster.get(f"{INSTANCES}/web"))
        between.back.good(word, "--delete-source")
    assert len(between.lengths()) == 2, "a disk has come back longer"
    assert not any(map(cluster.names, OF_MOVES)) and cluster.get(path) == {}


def test_a_machine_of_vitistack_goes_there_and_back(between: Between, operator: Operator, tiny_disk_image: str) -> None:
    between.do(lambda talk: talk.make(VITISTACK, vitistack(tiny_disk_image)))
    _there_and_back(between, "vitistack/web", f"{VITISTACK}/web", test_fronts.VITISTACK)
    _is_refused_without(operator, between)


def _is_refused_without(operator: Operator, between: Between) -> None:
    """The plan names a cluster whose operator is gone."""
    operator.process.terminate()
    operator.process.wait(60)
    refused = between.there.run("vitistack/web", "--dry-run")
    assert refused.returncode == 2, refused.stderr
    assert "nobody holds the lease default/paddock-operator-vitistack" in refused.stderr, refused.stderr


def test_a_machine_of_stakater_goes_there_and_back(between: Between, operator: Operator, tiny_signed: tiny.TinyImage) -> None:
    with served(tiny_signed) as url:
        _stakater_goes_there_and_back(between, url)


def _stakater_goes_there_and_back(between: Between, url: str) -> None:
    kubectl = between.cluster.kubectl
    between.do(lambda talk: catalogue(talk, url))
    between.do(lambda talk: talk.make(STAKATER, stakater()))
    refused = between.there.run("stakater/web", "--dry-run")
    assert refused.returncode == 2 and "DataSource images/tiny does not exist there; make it first" in refused.stderr, refused.stderr
    kubectl.ok(
        "create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": catalogue_of(between.cluster.reached(url))})
    )
    try:
        until(lambda: between.cluster.get(_FILLED).get("status", {}).get("phase") == "Succeeded")
        _there_and_back(between, "stakater/web", f"{STAKATER}/web", test_fronts.STAKATER)
    finally:
        kubectl.ok("delete", "namespace", "images")


def test_an_undo_takes_a_machine_of_vitistack_back(between: Between, operator: Operator, tiny_disk_image: str) -> None:
    """The command dies after the machine has started on the cluster, and before it has answered there."""
    between.do(lambda talk: talk.make(VITISTACK, vitistack(tiny_disk_image)))
    between.on_host(f"echo {MARKER} > /dev/vdb; sync")
    with between.one_at_a_time():
        assert between.there.killed_at("confirm the machine at the target", "vitistack/web")
        until(lambda: between.guests()[1])
        assert "is back" in between.there.good("vitistack/web", "--undo")
        assert between.on_host("head -n1 /dev/vdb") == MARKER
    assert not any(map(between.cluster.names, OF_MOVES)) and between.cluster.get(f"{VITISTACK}/web") == {}
