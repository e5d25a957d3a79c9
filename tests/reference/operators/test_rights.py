"""The rights of Stakater's and Vitistack's controllers on a real API server, each dialect by itself: enough, and none too many."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.reference.build import Binaries
from tests.reference.operators.conftest import Cluster, definitions, made, others
from tests.reference.operators.helm import NAMESPACE, Helm
from tests.reference.operators.rights import Audited, Right, audited, granted, is_asked_otherwise
from tests.reference.operators.running import Operator, operating
from tests.reference.operators.scenario import EXAMPLES, INTERVAL, Script

pytestmark = pytest.mark.reference
# Rights that the script does not call for, and the code that does.
ELSEWHERE = {
    "stakater": {
        Right("", "persistentvolumeclaims", "patch"): "a disk that grows (controllers/stakater/actions.py)",
    },
    "vitistack": {
        Right("", "persistentvolumeclaims", "get"): "a claim that is lost is looked for once more (controllers/vitistack/actions.py)",
        Right("", "events", "patch"): "an event that comes again is counted (runtime/recorder.py)",
        Right("", "secrets", "delete"): "the Secret of cloud-init data that got shorter (controllers/vitistack/actions.py)",
    },
}
# The status of an object is read again after a conflict (runtime/statuses.py), which a run may have or not.
CONFLICTS = {
    "stakater": {Right("infrastructure.stakater.com", "virtualmachines", "get")},
    "vitistack": {Right("vitistack.io", "machines", "get"), Right("vitistack.io", "networkconfigurations", "get")},
}


@dataclass(frozen=True)
class Played:
    """What the operator of one dialect asked of a cluster with the rights of the chart for it."""

    dialect: str
    cluster: Cluster
    seen: Audited


def play(cluster: Cluster, operator: Operator, dialect: str) -> None:
    """Scrape the metrics, and play the script."""
    operator.secure_metrics(cluster.access.token)
    script = Script(cluster.api, cluster.kubectl, [each for each in EXAMPLES if each.dialect == dialect])
    script.prepare()
    for name, act in (("created", script.apply), ("mended", script.tamper), ("changed", script.change), ("deleted", script.delete)):
        act()
        script.settled(name)


@pytest.fixture(scope="module", params=ELSEWHERE)
def played(
    request: pytest.FixtureRequest, binaries: Binaries, helms: list[Helm], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Played]:
    dialect, directory = request.param, tmp_path_factory.mktemp("rights")
    arguments = ("--reconcile-interval", INTERVAL, "--namespace", NAMESPACE, "--dialect", dialect, "--metrics-secure")
    with made(binaries, helms[0], directory, definitions(), f"dialects={{{dialect}}}") as cluster:
        with others(cluster), operating(cluster.operator, directory / "log", *arguments) as operator:
            operator.wait_ready()
            play(cluster, operator, dialect)
        yield Played(dialect, cluster, audited(cluster.audit))


def test_the_rights_are_enough(played: Played) -> None:
    assert not played.seen.refused
    assert len(played.seen.allowed) > 20


def test_no_right_is_too_many(played: Played) -> None:
    rights, elsewhere = set(granted(played.cluster.rights)), ELSEWHERE[played.dialect].keys()
    surplus = {each for each in rights if each not in played.seen.allowed and not is_asked_otherwise(each)} - CONFLICTS[played.dialect]
    assert surplus == elsewhere, "\n".join(map(str, sorted(surplus ^ elsewhere)))
    # A list is there for the servers whose watches begin without one.
    assert {each for each in rights if each.verb == "list"} == {each._replace(verb="list") for each in rights if each.verb == "watch"}
