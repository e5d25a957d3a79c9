"""The rights of VirtRigaud's controllers on a real API server: enough, and none too many."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.reference import crds
from tests.reference.build import Binaries
from tests.reference.operators import rigaudplay
from tests.reference.operators.conftest import Cluster, made
from tests.reference.operators.helm import NAMESPACE, Helm
from tests.reference.operators.rigaudplay import RigaudPlay, serving_fake
from tests.reference.operators.rights import Audited, Right, audited, granted, is_asked_otherwise
from tests.reference.operators.running import Operator, operating

pytestmark = pytest.mark.reference
GROUP = "infra.virtrigaud.io"
# Rights that the script does not call for, and the code that does.
ELSEWHERE = {
    Right("", "namespaces", "get"): "clones and migrations into other namespaces look for them",
    Right(GROUP, "vmclasses", "create"): "classes of machines that a Provider already has (providers/adoption.py)",
    Right(GROUP, "vmimages", "patch"): "the finalizer of an image that a Provider has prepared (images/removal.py)",
}
# The status of an object is read again after a conflict (runtime/statuses.py), which a run may have or not.
_REPORTED = ("vmclasses", "vmimages", "vmnetworkattachments", "vmplacementpolicies", "vmsnapshots", "vmclones", "vmsets")
CONFLICTS = {Right(GROUP, each, "get") for each in (*_REPORTED, "vmmigrations", "providers")}


@dataclass(frozen=True)
class Lab:
    """A cluster, and the address of a provider with the fake driver."""

    cluster: Cluster
    address: str

    def play(self) -> RigaudPlay:
        return RigaudPlay(self.cluster.api, self.cluster.kubectl, self.address)


@contextmanager
def acting(cluster: Cluster, log: Path) -> Iterator[Operator]:
    arguments = ("--reconcile-interval", "1s", "--namespace", NAMESPACE, *rigaudplay.ARGUMENTS)
    with operating(cluster.operator, log, *arguments) as operator:
        yield operator


@pytest.fixture(scope="module")
def played(binaries: Binaries, helms: list[Helm], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Audited]]:
    directory = tmp_path_factory.mktemp("rights")
    wanted = [each for each in crds.load() if each.spec["group"] == "infra.virtrigaud.io"]
    values = ("dialects={virtrigaud}", "metrics.secure=false")
    with made(binaries, helms[0], directory, wanted, *values) as cluster, serving_fake(directory) as address:
        with acting(cluster, directory / "log") as operator:
            operator.wait_ready()
            assert len(list(RigaudPlay(cluster.api, cluster.kubectl, address).steps())) == 6
        yield Lab(cluster, address), audited(cluster.audit)


def test_the_rights_are_enough(played: tuple[Lab, Audited]) -> None:
    _, seen = played
    assert not seen.refused
    assert len(seen.allowed) > 30


def test_no_right_is_too_many(played: tuple[Lab, Audited]) -> None:
    lab, seen = played
    surplus = {each for each in granted(lab.cluster.rights) if each not in seen.allowed and not is_asked_otherwise(each)} - CONFLICTS
    assert surplus == ELSEWHERE.keys(), "\n".join(map(str, sorted(surplus ^ ELSEWHERE.keys())))
