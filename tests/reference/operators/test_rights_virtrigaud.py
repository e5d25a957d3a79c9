"""The rights of VirtRigaud's controllers on a real API server: enough, none too many, and one that is missing is noticed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.reference import crds
from tests.reference.build import Binaries
from tests.reference.operators import rigaudplay
from tests.reference.operators.conftest import Cluster, lacking, made
from tests.reference.operators.helm import NAMESPACE, Helm
from tests.reference.operators.rigaudplay import RigaudPlay, serving_fake
from tests.reference.operators.rights import Audited, Right, audited, granted, is_asked_otherwise, removable
from tests.reference.operators.running import Operator, operating

pytestmark = pytest.mark.reference
GROUP = "infra.virtrigaud.io"
# Rights that the script does not call for, and the code that does.
CONFLICTS = "the status of an object is read again after a conflict (runtime/statuses.py)"
ADOPTION = "an object of the same name is read before it is adopted (runtime/adoption.py)"
ELSEWHERE = {
    **{
        Right(GROUP, each, "get"): CONFLICTS
        for each in ("vmclasses", "vmimages", "vmnetworkattachments", "vmplacementpolicies", "vmsnapshots", "vmclones", "vmsets")
    },
    Right(GROUP, "vmmigrations", "get"): CONFLICTS,
    Right(GROUP, "providers", "get"): CONFLICTS,
    Right("", "secrets", "get"): ADOPTION,
    Right("", "services", "get"): ADOPTION,
    Right("apps", "deployments", "get"): ADOPTION,
    Right("", "namespaces", "get"): "clones and migrations into other namespaces look for them",
    Right(GROUP, "vmclasses", "create"): "classes of machines that a Provider already has (providers/adoption.py)",
    Right(GROUP, "vmimages", "patch"): "the finalizer of an image that a Provider has prepared (images/removal.py)",
}


@dataclass(frozen=True)
class Lab:
    """A cluster, and the address of a provider with the fake driver."""

    cluster: Cluster
    address: str

    def play(self, halted: Callable[[], bool] = lambda: False) -> RigaudPlay:
        return RigaudPlay(self.cluster.api, self.cluster.kubectl, self.address, halted)


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
    surplus = {each for each in granted(lab.cluster.rights) if each not in seen.allowed and not is_asked_otherwise(each)}
    assert surplus == ELSEWHERE.keys(), "\n".join(map(str, sorted(surplus ^ ELSEWHERE.keys())))


def is_noticed(lab: Lab, right: Right, log: Path) -> bool:
    """Return whether an operator without a right is refused something, or says at /readyz that it cannot work."""
    try:
        with lacking(lab.cluster, right) as refused, acting(lab.cluster, log) as operator:
            operator.wait(lambda: operator.is_ready or refused())
            play = lab.play(lambda: refused() or not operator.is_ready)
            return any(play.halted() for _ in play.steps())
    finally:
        # Nothing may be left of it for the next one.
        with acting(lab.cluster, log.with_suffix(".after")) as operator:
            operator.wait_ready()
            lab.play().delete()


def test_a_right_that_is_missing_shows(played: tuple[Lab, Audited], tmp_path: Path) -> None:
    """One right, by the seed; RIGHTS_SEED=n takes another one, and `make soak` takes all."""
    lab, seen = played
    right = removable(lab.cluster.rights, seen)[0]
    assert is_noticed(lab, right, tmp_path / "log"), right


@pytest.mark.soak
def test_every_right_that_is_missing_shows(played: tuple[Lab, Audited], tmp_path: Path) -> None:
    lab, seen = played
    rights = removable(lab.cluster.rights, seen)
    assert [each for number, each in enumerate(rights) if not is_noticed(lab, each, tmp_path / f"log{number}")] == []
