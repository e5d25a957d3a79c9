"""The same script against a cluster, with the operator as a process, and on the embedded server: the same objects, cleanly owned."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from paddock.dialects import fronts
from tests.reference.build import Binaries
from tests.reference.operators.conftest import Cluster, embedded_fronts, others
from tests.reference.operators.running import Operator, operating
from tests.reference.operators.scenario import EXAMPLES, INTERVAL, Script, unlike
from tests.scenario.fronts.player import MACHINES

pytestmark = pytest.mark.reference
STEPS = ("created", "mended", "changed", "deleted")
DIALECTS = tuple(each for each in ("stakater", "vitistack") if each in fronts.WIRES)


@dataclass
class Played:
    """A script that was played to its end, and what was seen on the way."""

    script: Script
    # what applying again changed, and what `kubectl diff` said, by step
    rewritten: dict[str, Any]
    differing: dict[str, Any]
    # who owns what, after the first step
    owned: dict[str, Any]


def play(script: Script) -> Played:
    """Every step."""
    played = Played(script, {}, {}, {})
    script.prepare()
    script.apply()
    script.settled("created")
    _again(played, "created")
    played.owned = script.applied()
    script.tamper()
    script.settled("mended")
    script.change()
    script.settled("changed")
    _again(played, "changed")
    script.delete()
    script.settled("deleted")
    return played


def _again(played: Played, step: str) -> None:
    """Applying what is applied."""
    before = played.script.revisions()
    played.differing[step] = played.script.differs()
    played.script.apply()
    played.script.rest()
    after = played.script.revisions()
    played.rewritten[step] = {
        key: (before.get(key), after.get(key)) for key in before.keys() | after.keys() if before.get(key) != after.get(key)
    }


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    log = tmp_path_factory.mktemp("operator") / "log"
    arguments = ("--reconcile-interval", INTERVAL, "--namespace", "kubevirt-operator-system", "--dialect", ",".join(DIALECTS))
    with others(cluster), operating(cluster.operator, log, *arguments) as operator:
        operator.wait_ready()
        yield operator


@pytest.fixture(scope="module")
def on_cluster(cluster: Cluster, operator: Operator) -> Played:
    return play(Script(cluster.api, cluster.kubectl, [each for each in EXAMPLES if each.dialect in DIALECTS]))


@pytest.fixture(scope="module")
def on_embedded(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with embedded_fronts(binaries, tmp_path_factory.mktemp("embedded-fronts"), 1.0) as (api, kubectl):
        yield play(Script(api, kubectl, [each for each in EXAMPLES if each.dialect in DIALECTS]))


def same(one: Any, other: Any) -> None:
    found = list(unlike(one, other))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("step", STEPS)
def test_both_backends_come_to_the_same(on_cluster: Played, on_embedded: Played, step: str) -> None:
    same(on_embedded.script.steps[step], on_cluster.script.steps[step])
    for each in on_cluster.script.examples:
        is_there = f"{MACHINES.qualified} {each.name}/{each.machine()}" in on_cluster.script.steps[step]
        assert is_there == (step != "deleted")


def test_what_was_tampered_with_is_mended(on_cluster: Played, on_embedded: Played) -> None:
    for played in (on_cluster, on_embedded):
        same(played.script.steps["mended"], played.script.steps["created"])
        assert played.script.steps["changed"] != played.script.steps["created"]


def test_applying_again_writes_nothing(on_cluster: Played, on_embedded: Played) -> None:
    for played in (on_cluster, on_embedded):
        assert played.rewritten == {"created": {}, "changed": {}}
        assert played.differing == {"created": {}, "changed": {}}


def test_what_is_owned(on_cluster: Played, on_embedded: Played) -> None:
    assert on_cluster.owned
    same(on_embedded.owned, on_cluster.owned)


def test_nothing_is_left_but_what_users_made_besides(on_cluster: Played) -> None:
    users = {(each.name, thing["metadata"]["name"]) for each in on_cluster.script.examples for thing in each.documents()}
    users -= {(each.name, each.machine()) for each in on_cluster.script.examples}
    left = on_cluster.script.steps["deleted"].values()
    assert {(thing["metadata"]["namespace"], thing["metadata"]["name"]) for thing in left} <= users
    assert {thing["kind"] for thing in left} <= {"NetworkConfiguration", "ConfigMap"}


def test_it_needed_no_more_rights_than_it_has(on_cluster: Played, operator: Operator) -> None:
    refused = [
        line
        for line in operator.page("/metrics")[1].splitlines()
        if line.startswith("paddock_client_requests_total{") and 'code="403"' in line
    ]
    assert refused == []
    assert operator.complaints() == []
