"""Two hostile tenants on one host with real guests: neither sees, reaches nor starves the other."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddock.base.images.build import tiny
from paddock.engine.machine import limits
from tests.host.machines.test_shares import confine, used
from tests.host.networks.namespaces import Lab
from tests.host.runs.test_rootless import eventually, web
from tests.host.runs.unprivileged import Unprivileged

pytestmark = [pytest.mark.needs("qemu", "root", "kubectl", "netns"), pytest.mark.spec("kubevirt", 258)]
UP = ("up", "--detach", "--listen", "127.0.0.1:0")
SMALL = ("--memory", "192Mi", "--cpus", "1")
_SECONDS = 6.0


class TenantHost(Unprivileged):
    """A host of root's, in a network namespace of its own, and its tenants."""

    def __init__(self, home: Path, lab: Lab) -> None:
        # Not by `ip netns exec`, which hides the control groups.
        super().__init__(home, ("nsenter", f"--net=/run/netns/{lab.host}", "env", f"PADDOCK_DIR={home}/.local/state/paddock"), 0)

    def asks(self, tenant: str, *words: str) -> str:
        """A command of a tenant's that must succeed."""
        return self.paddock(*words, *self._as(tenant)).stdout

    def forbids(self, tenant: str, *words: str) -> bool:
        """Return whether the API forbids a tenant what it asks."""
        said = self.run(["kubectl", f"--kubeconfig={self.home / tenant}.kubeconfig", *words])
        return said.returncode != 0 and "forbidden" in said.stderr.lower()

    def fails_inside(self, tenant: str, guest: str, *words: str, namespace: str = "") -> bool:
        """Return whether a command fails that a tenant gives a guest."""
        return self.run([*self.program, "exec", guest, "-n", namespace or tenant, *self._as(tenant), "--", *words]).returncode != 0

    def inside(self, tenant: str, guest: str, *words: str) -> str:
        """A command in a tenant's guest that succeeds within a while."""
        end = time.monotonic() + 30
        while True:
            said = self.run([*self.program, "exec", guest, *self._as(tenant), "--", *words])
            if said.returncode == 0:
                return said.stdout
            assert time.monotonic() < end, f"{tenant}/{guest}: {said.stdout}{said.stderr}"

    def instances(self) -> dict[str, dict[str, Any]]:
        """Return all instances by namespace and name."""
        found = json.loads(self.kubectl("get", "vmi", "-A", "-o", "json"))["items"]
        return {f"{each['metadata']['namespace']}/{each['metadata']['name']}": each for each in found}

    def pid(self, name: str) -> int:
        """Return the QEMU of an instance."""
        uid = self.instances()[name]["metadata"]["uid"]
        return int(json.loads((self.root / "engine" / "machines" / uid / "process.json").read_text())["pid"])

    def _as(self, tenant: str) -> tuple[str, ...]:
        return ("--kubeconfig", str(self.home / f"{tenant}.kubeconfig"))


@pytest.fixture
def host(work: Path) -> Iterator[TenantHost]:
    """A host with two tenants of three processors each."""
    lab = Lab(work / "lab")
    made = TenantHost(work / "home", lab)
    try:
        made.paddock(*UP)
        for name in ("acme", "evil"):
            made.paddock("tenant", name, "--cpu", "3", "--memory", "2Gi")
        yield made
        made.paddock("down", "--purge", "--yes")
    finally:
        lab.close()


def test_neither_sees_reaches_nor_starves_the_other(host: TenantHost, tiny_guest: tiny.TinyImage) -> None:
    image = str(tiny_guest.disk)
    host.asks("acme", "run", image, "--name", "web", *SMALL)
    for name in ("spy", "one", "two"):
        host.asks("evil", "run", image, "--name", name, *SMALL)
    address = host.instances()["acme/web"]["status"]["interfaces"][0]["ipAddress"]
    # The quota of the one is full; the other starts what it wants.
    host.asks("evil", "run", image, "--name", "more", *SMALL, "--no-wait")
    host.asks("acme", "run", image, "--name", "peer", *SMALL)
    assert host.instances()["evil/more"]["status"]["phase"] == "Pending"
    assert "exceeded quota: tenant" in json.dumps(host.instances()["evil/more"]["status"]["conditions"])
    # The API: neither objects, nor the way to more rights or to a larger share.
    for words in (
        ("get", "vm", "-n", "acme"),
        ("get", "secret", "-n", "acme"),
        ("delete", "vm", "web", "-n", "acme"),
        ("get", "namespaces"),
        ("annotate", "namespace", "evil", "paddock.dev/cpu-shares=10000"),
        ("delete", "resourcequota", "tenant"),
        ("delete", "networkpolicy", "tenant"),
    ):
        assert host.forbids("evil", *words), words
    assert host.fails_inside("evil", "web", "true", namespace="acme")
    # Addresses and names: a guest of its own tenant is answered, one of the other is not.
    assert host.inside("acme", "peer", *web(address)) == host.inside("acme", "peer", *web("web")) == "web\n"
    for place in (address, "web", "web.acme.vm.cluster.local"):
        assert host.fails_inside("evil", "spy", *web(place)), place
    assert host.fails_inside("evil", "spy", "ping", "-c", "1", "-w", "2", address)
    starving(host)


def starving(host: TenantHost) -> None:
    """Three busy guests of the one leave a guest of the other half of a processor."""
    found = limits.on_this_host().of("cpu")
    if found is None or not os.access(found[0], os.W_OK):
        return
    crowd = ("evil/spy", "evil/one", "evil/two")
    for each in ("acme/web", *crowd):
        tenant, name = each.split("/")
        host.inside(tenant, name, "sh", "-c", "(while :; do :; done) >/dev/null 2>&1 </dev/null &")
    pids = [host.pid(each) for each in ("acme/web", *crowd)]
    cpu = min(os.sched_getaffinity(0))
    for pid in pids:
        confine(pid, cpu)
    share = ratio(pids)
    print(f"a guest of one tenant against three of the other: {share:.2f}")
    assert 0.7 < share < 1.43
    # The host's administrator may give the one more, at once.
    host.kubectl("annotate", "namespace", "acme", "paddock.dev/cpu-shares=300")
    eventually(lambda: ratio(pids) > 2.0, "three times the share")


def ratio(pids: list[int]) -> float:
    """Return the processor time of the first process as a part of that of the others, over some seconds."""
    before = [used(pid) for pid in pids]
    time.sleep(_SECONDS)
    spent = [used(pid) - start for pid, start in zip(pids, before, strict=True)]
    return spent[0] / sum(spent[1:])
