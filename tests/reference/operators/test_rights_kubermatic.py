"""The rights of Kubermatic's controllers in the cluster: enough, and none too many."""

import base64
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from paddock.server.security.pki import Authority
from tests.reference import crds
from tests.reference.build import Binaries
from tests.reference.client import Kubectl
from tests.reference.embedded import serving
from tests.reference.operators.conftest import Cluster, made, others
from tests.reference.operators.helm import NAMESPACE, Helm
from tests.reference.operators.kubermaticplay import KubermaticPlay
from tests.reference.operators.rights import Audited, Right, audited, granted, is_asked_otherwise
from tests.reference.operators.running import Operator, operating
from tests.reference.operators.test_two_apis import POOLS, without_pools

pytestmark = pytest.mark.reference


@dataclass(frozen=True)
class TwoSides:
    """A cluster, and the API of the front objects."""

    cluster: Cluster
    front: Kubectl
    authorities: tuple[str, str]

    def play(self) -> KubermaticPlay:
        return KubermaticPlay(self.cluster.api, self.front, self.authorities)

    @contextmanager
    def acting(self, log: Path) -> Iterator[Operator]:
        front = ("--dialect", "kubermatic", "--front", str(self.front.access.kubeconfig))
        with (
            others(self.cluster),
            operating(self.cluster.operator, log, *front, "--namespace", NAMESPACE, "--reconcile-interval", "1s") as operator,
        ):
            yield operator


@pytest.fixture(scope="module")
def played(binaries: Binaries, helms: list[Helm], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TwoSides, Audited]]:
    directory = tmp_path_factory.mktemp("rights")
    for each in ("cluster", "home"):
        (directory / each).mkdir()
    # KubeVirt's own definition of pools is of a release that lacks what the examples say.
    wanted = [*without_pools(), *(each for each in crds.load() if each.name == POOLS)]
    values = ("dialects={kubermatic}", "front.secretName=front", "metrics.secure=false")
    with ExitStack() as ends:
        cluster = ends.enter_context(made(binaries, helms[0], directory / "cluster", wanted, *values))
        server = ends.enter_context(serving(directory / "front"))
        one, other = (base64.b64encode(Authority(directory / name).certificate).decode() for name in ("one", "other"))
        sides = TwoSides(cluster, Kubectl(binaries.kubectl, server.access, directory / "home"), (one, other))
        with sides.acting(directory / "log") as operator:
            operator.wait_ready()
            assert len(list(sides.play().steps())) == 4
        yield sides, audited(cluster.audit)


def test_the_rights_are_enough(played: tuple[TwoSides, Audited]) -> None:
    _, seen = played
    assert not seen.refused


def test_no_right_is_too_many(played: tuple[TwoSides, Audited]) -> None:
    sides, seen = played
    surplus = {each for each in granted(sides.cluster.rights) if each not in seen.allowed and not is_asked_otherwise(each)}
    assert surplus == set(), "\n".join(map(str, sorted(surplus)))
    assert Right("", "events", "create") not in set(granted(sides.cluster.rights))
