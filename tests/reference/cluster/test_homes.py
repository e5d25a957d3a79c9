"""One script for both homes: a stopped machine of Vitistack on `paddock up` and on the cluster, and what users see, line by line."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from paddock.meta.patch import apply_merge_patch
from tests.host.conftest import registry, work
from tests.host.guests import Registry
from tests.host.runs.conftest import Host
from tests.reference.client import Json, Kubectl
from tests.reference.cluster import homes
from tests.reference.cluster.homes import Home
from tests.reference.cluster.test_fronts import VITISTACK, Fronts, example, fronts, image
from tests.reference.server import Access

pytestmark = [pytest.mark.reference, pytest.mark.soak]
# Fixtures that pytest finds here.
__all__ = ["fronts", "image", "registry", "work"]
NAMESPACE = "homes"
SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
KIND = "machines.vitistack.io"


@pytest.fixture
def host(work: Path, registry: Registry) -> Iterator[Host]:
    made = Host(work, registry.address)
    try:
        made.start()
        yield made
    finally:
        made.end()


def document(image: str) -> Json:
    """The document of the dialect, stopped, with an image for its root disk."""
    (found,) = example("vitistack", "basic")
    found["metadata"] = {"name": VITISTACK.machine, "annotations": {"vitistack.io/root-image": image}}
    made: Json = apply_merge_patch(found, VITISTACK.stop)
    return made


def script(made: Json) -> Mapping[str, Callable[[Home], None]]:
    """The steps; the test compares the result of each when it rests."""

    def create(home: Home) -> None:
        home.run("apply", "--server-side", "-f", "-", given=yaml.safe_dump(made))

    def change(home: Home) -> None:
        home.run("patch", KIND, VITISTACK.machine, "--type=merge", "-p", json.dumps(VITISTACK.change))

    def delete(home: Home) -> None:
        home.run("delete", KIND, VITISTACK.machine)

    return {"created": create, "changed": change, "deleted": delete}


def test_users_see_the_same_of_a_stopped_machine(fronts: Fronts, host: Host, image: str, tmp_path: Path) -> None:
    kubectl, machine = fronts.cluster.kubectl, VITISTACK.machine
    access = Access("", "", tmp_path, host.root / "kubeconfig")
    embedded = Home("paddock up", Kubectl(kubectl.program, access, tmp_path), machine, NAMESPACE)
    cluster = Home("the cluster", kubectl, machine, NAMESPACE)
    for home in (embedded, cluster):
        home.kubectl.ok("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump(SPACE))
        homes.live(home, KIND, script(document(image)))
    found, explained = list(homes.differences(embedded, cluster)), homes.known(embedded.seen)
    unexplained = [each for each in found if not any(known.covers(each) for known in explained)]
    assert not unexplained, "\n".join(map(str, unexplained))
    stale = [known for known in explained if not any(known.covers(each) for each in found)]
    assert not stale, stale
    assert len(embedded.seen["created"]) > 15
