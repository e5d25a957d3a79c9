"""The rights of the chart `paddock` on a real API server: enough, none too many, and an operator that lacks one is refused something."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.reference.build import Binaries
from tests.reference.operators.conftest import Cluster, definitions, made, others
from tests.reference.operators.helm import NAMESPACE, Helm
from tests.reference.operators.rights import Audited, Right, audited, granted, is_asked_otherwise, removable, without
from tests.reference.operators.running import Operator, operating
from tests.reference.operators.scenario import EXAMPLES, INTERVAL, Script

pytestmark = pytest.mark.reference
ARGUMENTS = ("--reconcile-interval", INTERVAL, "--namespace", NAMESPACE, "--dialect", "stakater,vitistack", "--metrics-secure")
# Rights that the script does not call for, and the code that does.
CONFLICTS = "the status of an object is read again after a conflict (runtime/statuses.py)"
ADOPTION = "an object of the same name is read before it is adopted (runtime/adoption.py)"
ELSEWHERE = {
    Right("infrastructure.stakater.com", "virtualmachines", "get"): CONFLICTS,
    Right("vitistack.io", "machines", "get"): CONFLICTS,
    Right("vitistack.io", "networkconfigurations", "get"): CONFLICTS,
    Right("", "persistentvolumeclaims", "get"): ADOPTION,
    Right("", "secrets", "get"): ADOPTION,
    Right("", "services", "get"): ADOPTION,
    Right("cdi.kubevirt.io", "datavolumes", "get"): ADOPTION,
    Right("k8s.cni.cncf.io", "network-attachment-definitions", "get"): ADOPTION,
    Right("cdi.kubevirt.io", "datavolumes", "create"): "disks of Vitistack's machines that are filled from images",
}


@contextmanager
def acting(cluster: Cluster, log: Path) -> Iterator[Operator]:
    with others(cluster.access), operating(cluster.operator, log, *ARGUMENTS) as operator:
        yield operator


def steps(cluster: Cluster, operator: Operator) -> Iterator[str]:
    """Play the script, one step at a time. The first is a scrape of the metrics."""
    operator.wait(lambda: operator.listens)
    operator.secure_metrics(cluster.access.token)
    yield "scraped"
    script = Script(cluster.api, cluster.kubectl, EXAMPLES)
    script.prepare()
    for name, act in (("created", script.apply), ("mended", script.tamper), ("changed", script.change), ("deleted", script.delete)):
        act()
        script.settled(name)
        yield name


@pytest.fixture(scope="module")
def played(binaries: Binaries, helms: list[Helm], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Audited]]:
    directory = tmp_path_factory.mktemp("rights")
    with made(binaries, helms[0], directory, definitions()) as cluster:
        with acting(cluster, directory / "log") as operator:
            operator.wait_ready()
            assert len(list(steps(cluster, operator))) == 5
        yield cluster, audited(cluster.audit)


def test_the_rights_are_enough(played: tuple[Cluster, Audited]) -> None:
    _, seen = played
    assert not seen.refused
    assert len(seen.allowed) > 30


def test_no_right_is_too_many(played: tuple[Cluster, Audited]) -> None:
    cluster, seen = played
    surplus = {each for each in granted(cluster.rights) if each not in seen.allowed and not is_asked_otherwise(each)}
    assert surplus == ELSEWHERE.keys(), "\n".join(map(str, sorted(surplus ^ ELSEWHERE.keys())))
    # A list is there for the servers whose watches begin without one.
    watched = {each._replace(verb="list") for each in granted(cluster.rights) if each.verb == "watch"}
    assert {each for each in granted(cluster.rights) if each.verb == "list"} == watched


def is_refused_without(cluster: Cluster, right: Right, log: Path) -> bool:
    """Return whether an operator without a right is refused something, or says at /readyz that it cannot work."""
    before = cluster.audit.stat().st_size
    cluster.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(without(cluster.rights, right)))
    try:
        with acting(cluster, log) as operator:
            return any(audited(cluster.audit, before).refused or not _is_ready(operator) for _ in steps(cluster, operator))
    finally:
        cluster.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(cluster.rights))
        with acting(cluster, log.with_suffix(".after")) as operator:
            operator.wait_ready()
            assert len(list(steps(cluster, operator))) == 5


def _is_ready(operator: Operator) -> bool:
    return operator.page("/readyz")[0] == 200


def test_a_right_that_is_missing_shows(played: tuple[Cluster, Audited], tmp_path: Path) -> None:
    """One right, by the seed; RIGHTS_SEED=n takes another one, and `make soak` takes all."""
    cluster, seen = played
    right = removable(cluster.rights, seen)[0]
    assert is_refused_without(cluster, right, tmp_path / "log"), right


@pytest.mark.soak
def test_every_right_that_is_missing_shows(played: tuple[Cluster, Audited], tmp_path: Path) -> None:
    cluster, seen = played
    rights = removable(cluster.rights, seen)
    assert [each for number, each in enumerate(rights) if not is_refused_without(cluster, each, tmp_path / f"log{number}")] == []
