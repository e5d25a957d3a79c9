"""Every example of every dialect that is live, applied to a host that runs machines: nothing ever writes into what was applied, from
the first moment over crashes of the server to the end.
"""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.engine.machine.process import holders
from paddock.kubernetes import catalog
from tests.host.fronts.life import Proxy, catalogue, storage_class
from tests.host.guests import registry, serving, tiny_disk_image, tiny_guest
from tests.host.machine import lacks
from tests.reference.build import Binaries
from tests.reference.client import Kubectl
from tests.reference.embedded import Embedded
from tests.reference.embedded import serving as started
from tests.reference.gitops import watching

pytestmark = pytest.mark.long

# Fixtures that pytest finds here.
__all__ = ["registry", "tiny_disk_image", "tiny_guest"]
CLASSES = ("ocs-storagecluster-ceph-rbd", "fast-ssd")
SECONDS = 240.0
# Instances without a machine: their spec is filled in when they begin and may not be written again, as with KubeVirt. kubectl's
# question what an apply would do is refused. A migration is refused while its machine does not run.
RUNS = ("instance.yaml", "migration.yaml")
# Life goes on for so long at least, in which controllers could write.
LEAST_SECONDS = 10.0


@pytest.fixture
def host(registry: Any, tiny_guest: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Embedded, str]]:
    """A host for which the internet is loopback, and the address of its images."""
    if reason := lacks("qemu"):
        pytest.skip(f"needs qemu: {reason}")
    root = Path(tempfile.mkdtemp(prefix="pdkg-", dir="/tmp"))
    try:
        with serving(partial(Proxy, disk=tiny_guest.disk, sent=[])) as proxy:
            monkeypatch.setenv("http_proxy", f"http://{proxy}")
            monkeypatch.setenv("no_proxy", "127.0.0.1")
            options = ("--network", "user", "--image-from", "127.0.0.1", "--memory-overcommit", "100")
            with started(root / "server", *options, command="up") as server:
                yield server, f"http://{proxy}/rhel9.qcow2"
    finally:
        for lock in root.rglob("machines/*/lock"):
            for pid in holders(lock):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(root, ignore_errors=True)


def running(kubectl: Kubectl) -> int:
    """Return the number of running machines, in all namespaces."""
    words = kubectl.ok("get", "virtualmachines.kubevirt.io", "-A", "-o", "jsonpath={.items[*].status.printableStatus}")
    return words.split().count("Running")


def lives(kubectl: Kubectl, machines: int) -> Callable[[], bool]:
    """Tells that as many machines run as can here, and that some time has passed."""
    least = time.monotonic() + LEAST_SECONDS
    return lambda: running(kubectl) >= machines and time.monotonic() > least


# Not every machine of the examples can run here: some name images, claims and bridges that no host of a test has.
@pytest.mark.parametrize(("dialect", "machines"), [("stakater", 2), ("vitistack", 3), ("kubermatic", 4), ("kubevirt", 0), ("core", 0)])
def test_nothing_writes_into_what_was_applied(
    dialect: str, machines: int, host: tuple[Embedded, str], binaries: Binaries, tmp_path: Path
) -> None:
    server, image = host
    kubectl = Kubectl(binaries.kubectl, server.access, tmp_path)
    prepared = [*catalogue(image), *map(storage_class, CLASSES)]
    prepared.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}})
    for document in prepared:
        kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump(document))
    examples = sorted(each for each in (catalog.folder(dialect) / "examples").glob("*.yaml") if each.name not in RUNS)
    assert examples
    watching.apply(kubectl, examples)
    watching.stays_as_applied(kubectl, examples, lives(kubectl, machines), SECONDS)
    before = watching.contents(kubectl, examples)
    watching.apply(kubectl, examples)
    assert watching.contents(kubectl, examples) == before, "what is as it should be was written once more"
    server.kill()
    server.start()
    watching.stays_as_applied(kubectl, examples, lives(kubectl, machines), SECONDS)
    assert watching.contents(kubectl, examples) == before
