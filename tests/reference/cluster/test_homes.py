"""One script for both homes: a guest of each dialect's example on `paddock up` and on the cluster, and what users see, line by line."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from paddock.base.images.build import tiny
from paddock.kubernetes.meta.patch import apply_merge_patch
from tests.host.conftest import work
from tests.host.fronts.life import FrontHost, storage_class
from tests.host.machine import lacks
from tests.host.networks.namespaces import Child, Lab
from tests.reference.client import Json, Kubectl
from tests.reference.cluster import homes, storage
from tests.reference.cluster.conftest import say
from tests.reference.cluster.homes import INSTANCES, MACHINES, Home
from tests.reference.cluster.test_fronts import MANIFESTS, Front, Fronts, Remote, fronts, image, providing, served, signed, stock
from tests.reference.server import Access
from tests.reference.virtctl.conftest import holds
from tools.referencepages.homes import reasons

pytestmark = [pytest.mark.reference, pytest.mark.soak]
# Fixtures that pytest finds here.
__all__ = ["fronts", "image", "signed", "work"]


@dataclass(frozen=True)
class Script:
    """The life of a machine, step by step."""

    front: Front
    documents: Sequence[Json]

    def steps(self) -> Mapping[str, Callable[[Home], None]]:
        """Return the actions and waits before each look."""
        return dict(zip(homes.STEPS, (self.create, self.start, self.change, self.stop, self.start, self.delete), strict=True))

    def create(self, home: Home) -> None:
        """The machine is off; its disks are filled, if they come before its first start."""
        stopped = [apply_merge_patch(each, self.front.stop) if self._is_machine(each, home) else each for each in self.documents]
        home.write("apply", "--server-side", "-f", "-", given=stopped)

        def is_there() -> bool:
            phases = [each.get("status", {}).get("phase") for each in home.objects() if each["kind"] == "DataVolume"]
            status = home.made(MACHINES, self.front.machine).get("status", {})
            return status.get("printableStatus") == "Stopped" and {*phases} <= {"Succeeded"}

        home.wait("made", is_there)

    def start(self, home: Home) -> None:
        """The guest answers, and has an address."""
        self._patch(home, self.front.start)

        def answers() -> bool:
            instance = home.made(INSTANCES, self.front.machine)
            status: Mapping[str, Any] = instance.get("status", {})
            interface: Json = (status.get("interfaces") or [{}])[0]
            has_said = interface.get("ipAddress") and interface.get("interfaceName") and status.get("guestOSInfo", {}).get("name")
            told = all(holds(each, "AgentConnected") for each in (instance, home.made(MACHINES, self.front.machine)))
            return bool(has_said) and told and self._state(home) == "Running"

        home.wait("running", answers)

    def change(self, home: Home) -> None:
        """The change has arrived, or waits for the next start."""
        self._patch(home, self.front.change)

        def has_arrived() -> bool:
            machine = home.made(MACHINES, self.front.machine)
            is_seen = machine["status"]["desiredGeneration"] == machine["metadata"]["generation"]
            return self.front.waits or (self.front.changed(machine) and bool(is_seen))

        home.wait("changed", has_arrived)

    def stop(self, home: Home) -> None:
        """The guest has shut down."""
        self._patch(home, self.front.stop)
        home.wait("stopped", lambda: not home.made(INSTANCES, self.front.machine) and self._state(home) == "Stopped")

    def delete(self, home: Home) -> None:
        """Nothing is left."""
        home.write("delete", "--ignore-not-found", "--wait=false", "-f", "-", given=[*reversed(self.documents)])
        home.wait("gone", lambda: not home.objects())

    def _is_machine(self, document: Json, home: Home) -> bool:
        return home.kind.endswith(document["apiVersion"].partition("/")[0]) and document["metadata"]["name"] == self.front.machine

    def _state(self, home: Home) -> str:
        return self.front.state(home.written(self.front.machine))

    def _patch(self, home: Home, body: Json) -> None:
        home.write("patch", home.kind, self.front.machine, "--type=merge", "-p", json.dumps(body))


@dataclass(frozen=True)
class Guest:
    """The dialect of a machine, and the image of its disk: a file, and its URL on the host's loopback."""

    dialect: str
    image: tiny.TinyImage
    url: str


@pytest.fixture(params=list(MANIFESTS))
def guest(
    request: pytest.FixtureRequest, tiny_guest: tiny.TinyImage, tiny_signed: tiny.TinyImage, image: str, signed: str
) -> Guest:  # fmt: skip
    # Only Stakater's machines have Secure Boot unless they say otherwise.
    return Guest(request.param, *((tiny_signed, signed) if request.param == "stakater" else (tiny_guest, image)))


def lived(home: Home, dialect: str, url: str, remote: Remote | None = None) -> Home:
    """The life of a dialect's example in a home."""
    front, documents = MANIFESTS[dialect]
    space = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home.namespace}})
    for kubectl in (home.kubectl, home.front):
        kubectl.ok("apply", "--server-side", "-f", "-", stdin=space)
    if dialect == "stakater":
        stock(home.kubectl, url)
    made = documents(url, remote)
    for each in made:
        each["metadata"]["namespace"] = home.namespace
    homes.live(home, Script(front, made).steps())
    return home


def embedded(guest: Guest, program: Path, work: Path) -> Home:
    """The life on `paddock up`, in a network namespace with bridges, services and a packet filter of its own."""
    lab, dialect = Lab(work / "lab"), guest.dialect

    def inside() -> Home:
        host = FrontHost(work / "host", "127.0.0.1:1")
        host.root.mkdir()
        host.start()
        kubectl = Kubectl(program, Access("", "", work, host.root / "kubeconfig"), work)
        try:
            with served(guest.image) as url:
                # Names of classes that the examples have; this host's pool has all of them.
                kubectl.ok("apply", "-f", "-", stdin="\n".join(json.dumps(storage_class(each)) for each in storage.CLASSES[1:]))
                return lived(Home("paddock up", kubectl, kubectl, MANIFESTS[dialect][0].kind, f"homes-{dialect}"), dialect, url)
        except BaseException as error:
            raise AssertionError(f"{error}\n{(host.root / 'said').read_text()[-4000:]}") from error
        finally:
            host.end()

    try:
        found: Home = Child(lab.host, inside).result()
        return found
    finally:
        lab.close()


@contextmanager
def _space(kubectl: Kubectl, name: str) -> Iterator[str]:
    """A namespace of the cluster that has nothing of an earlier run, and is gone afterwards."""
    kubectl.ok("delete", "namespace", name, "--ignore-not-found", "--timeout=110s")
    try:
        yield name
    finally:
        kubectl.ok("delete", "namespace", name, "--ignore-not-found", "--wait=false")


def on_cluster(guest: Guest, fronts: Fronts, directory: Path) -> Home:
    """The life on the cluster; the documents of Kubermatic are in an API of their own."""
    kubectl, dialect = fronts.cluster.kubectl, guest.dialect
    front = Kubectl(kubectl.program, fronts.front.access, directory) if dialect == "kubermatic" else kubectl
    with _space(kubectl, f"homes-{dialect}") as name:
        home = Home("the cluster", kubectl, front, MANIFESTS[dialect][0].kind, name)
        if dialect != "virtrigaud":
            return lived(home, dialect, guest.url)
        with providing(fronts.cluster, directory, name) as remote:
            return lived(home, dialect, guest.url, remote)


def test_users_see_the_same_in_both_homes(guest: Guest, fronts: Fronts, work: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    if fronts.cluster.has_cdi:
        pytest.skip("needs stand-in: the table has its conditions")
    for need in ("qemu", "netns", "tun", "nft", "ovmf"):
        if reason := lacks(need):
            pytest.skip(f"needs {need}: {reason}")
    both = []
    for live in (partial(embedded, guest, fronts.cluster.kubectl.program, work), partial(on_cluster, guest, fronts, tmp_path)):
        home = live()
        both.append(home)
        (tmp_path / f"{home.name}.json").write_text(json.dumps(home.seen, indent=1))
        steps = ", ".join(f"{step} {seconds:.0f}" for step, seconds in home.seconds.items())
        say(pytestconfig)(f"{guest.dialect} on {home.name}: {sum(home.seconds.values()):.0f} s ({steps}), load {os.getloadavg()[0]:.0f}")
    found = list(homes.differences(guest.dialect, *both))
    explained = [each for reason in reasons() for each in reason.difference]
    assert not (new := homes.unexplained(found, explained)), new
    assert not (old := homes.stale(guest.dialect, found, explained)), old
    seen = both[0].seen
    assert len(seen["running"]) > 90 and [step for step in homes.STEPS if not seen[step]] == ["deleted"]
