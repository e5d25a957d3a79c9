"""The placement of a machine on the one host."""

from typing import Any

import pytest

from paddock.kubernetes.meta.pods import Affinity
from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec
from paddock.kubevirt.plan.machine.placement import (
    Neighbour,
    NodeTaint,
    PlacementEnvironment,
    PlacementNode,
    PriorityLevel,
    fitting,
    pod_labels,
    preferred,
    priority_of,
)

HOST = PlacementNode("here", {"kubernetes.io/hostname": "here", "zone": "a", "cpus": "8"})
WEB = {"app": "web"}
TERM: dict[str, Any] = {"labelSelector": {"matchLabels": WEB}, "topologyKey": "kubernetes.io/hostname"}


def required(kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def nodes(*expressions: dict[str, Any], fields: bool = False) -> dict[str, Any]:
    member = "matchFields" if fields else "matchExpressions"
    terms = {"nodeSelectorTerms": [{member: list(expressions)}] if expressions else [{}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def spread(**more: Any) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": WEB}}
    return {"topologySpreadConstraints": [{**constraint, **more}]}


def why(spec: dict[str, Any], around: PlacementEnvironment, who: Neighbour | None = None) -> str:
    wanted = from_data({"domain": {"devices": {}}, **spec}, VirtualMachineInstanceSpec)
    found = fitting(wanted, who or Neighbour("default", WEB), (around,))[1]
    return found.message if found is not None else ""


SELECTOR, TAINT = "didn't match Pod's node affinity/selector", "had untolerated taint {k: v}"
AFFINITY, ANTI = "didn't match pod affinity rules", "didn't match pod anti-affinity rules"


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, ""),
        ({"nodeSelector": {"zone": "a"}}, ""),
        ({"nodeSelector": {"zone": "b"}}, SELECTOR),
        (nodes({"key": "zone", "operator": "In", "values": ["a", "c"]}), ""),
        (nodes({"key": "zone", "operator": "NotIn", "values": ["a"]}), SELECTOR),
        (nodes({"key": "gpu", "operator": "Exists"}), SELECTOR),
        (nodes({"key": "gpu", "operator": "DoesNotExist"}), ""),
        (nodes({"key": "cpus", "operator": "Gt", "values": ["4"]}), ""),
        (nodes({"key": "cpus", "operator": "Lt", "values": ["4"]}), SELECTOR),
        (nodes({"key": "zone", "operator": "Gt", "values": ["4"]}), SELECTOR),
        (nodes({"key": "metadata.name", "operator": "In", "values": ["here"]}, fields=True), ""),
        (nodes({"key": "metadata.name", "operator": "In", "values": ["there"]}, fields=True), SELECTOR),
        (nodes(), SELECTOR),
        (required("podAntiAffinity", TERM), ""),
        (required("podAffinity", TERM), ""),
        (required("podAffinity", {**TERM, "labelSelector": {"matchLabels": {"app": "db"}}}), AFFINITY),
        (required("podAffinity", {**TERM, "topologyKey": "rack"}), AFFINITY),
        (spread(), ""),
        (spread(topologyKey="rack"), "missing required label"),
        (spread(topologyKey="rack", whenUnsatisfiable="ScheduleAnyway"), ""),
        (spread(minDomains=2), ""),
        ({"priorityClassName": "system-node-critical"}, ""),
        ({"priorityClassName": "gold"}, "no PriorityClass with name gold was found"),
    ],
)
def test_alone_on_the_host(spec: dict[str, Any], wanted: str) -> None:
    found = why(spec, PlacementEnvironment(HOST))
    assert wanted in found and bool(wanted) == bool(found)


@pytest.mark.parametrize(
    ("named", "levels", "wanted"),
    [
        (None, {}, 0),
        (None, {"gold": PriorityLevel(9)}, 0),
        ("gold", {"gold": PriorityLevel(9), "usual": PriorityLevel(3, is_default=True)}, 9),
        (None, {"gold": PriorityLevel(9), "usual": PriorityLevel(3, is_default=True)}, 3),
        ("", {"two": PriorityLevel(2, is_default=True), "one": PriorityLevel(-1, is_default=True)}, -1),
        ("gone", {"usual": PriorityLevel(3, is_default=True)}, 0),
    ],
)
def test_the_priority_of_a_start(named: str | None, levels: dict[str, PriorityLevel], wanted: int) -> None:
    assert priority_of(named, levels) == wanted


def test_the_words_of_a_scheduler() -> None:
    assert why({"nodeSelector": {"zone": "b"}}, PlacementEnvironment(HOST)) == f"0/1 nodes are available: 1 node(s) {SELECTOR}."


@pytest.mark.parametrize(
    ("tolerations", "wanted"),
    [
        ([], TAINT),
        ([{"key": "k", "operator": "Equal", "value": "v"}], ""),
        ([{"key": "k", "value": "other"}], TAINT),
        ([{"key": "k", "operator": "Exists"}], ""),
        ([{"operator": "Exists"}], ""),
        ([{"operator": "Exists", "effect": "NoExecute"}], TAINT),
        ([{"key": "j", "operator": "Exists"}], TAINT),
    ],
)
def test_taints(tolerations: list[dict[str, Any]], wanted: str) -> None:
    host = PlacementNode("here", HOST.labels, (NodeTaint("k", "v", "NoSchedule"), NodeTaint("soft", "", "PreferNoSchedule")))
    assert wanted in why({"tolerations": tolerations}, PlacementEnvironment(host))


def test_a_closed_host() -> None:
    closed = PlacementEnvironment(PlacementNode("here", unschedulable=True))
    assert "were unschedulable" in why({}, closed)
    assert not why({"tolerations": [{"operator": "Exists"}]}, closed)


@pytest.mark.parametrize(
    ("term", "other", "wanted"),
    [
        ({}, Neighbour("default", WEB), ANTI),
        ({}, Neighbour("default", {"app": "db"}), ""),
        ({}, Neighbour("other", WEB), ""),
        ({"namespaces": ["other"]}, Neighbour("other", WEB), ANTI),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, Neighbour("other", WEB), ANTI),
        ({"namespaceSelector": {}}, Neighbour("other", WEB), ANTI),
        ({"topologyKey": "rack"}, Neighbour("default", WEB), ""),
        ({"mismatchLabelKeys": ["app"]}, Neighbour("default", WEB), ""),
        ({"matchLabelKeys": ["app"]}, Neighbour("default", WEB), ANTI),
    ],
)
def test_unwanted_neighbours(term: dict[str, Any], other: Neighbour, wanted: str) -> None:
    around = PlacementEnvironment(HOST, (other,), namespaces={"other": {"team": "x"}})
    assert wanted in why(required("podAntiAffinity", {**TERM, **term}), around)


def test_wanted_neighbours_who_are_here() -> None:
    db = {**TERM, "labelSelector": {"matchLabels": {"app": "db"}}}
    assert not why(required("podAffinity", db), PlacementEnvironment(HOST, (Neighbour("default", {"app": "db"}),)))


def test_those_who_are_here_may_object() -> None:
    affinity = from_data(required("podAntiAffinity", TERM)["affinity"], Affinity)
    around = PlacementEnvironment(HOST, (Neighbour("default", {"app": "db"}, affinity),))
    assert "existing pods anti-affinity" in why({}, around)
    assert not why({}, around, Neighbour("default", {"app": "cache"}))


def test_more_places_than_there_are() -> None:
    around = PlacementEnvironment(HOST, (Neighbour("default", WEB),))
    assert "topology spread constraints" in why(spread(minDomains=2), around)


def test_labels_of_the_pod_that_is_not_there() -> None:
    assert pod_labels("web", {"app": "web"}, "uid")["kubevirt.io/created-by"] == "uid"
    assert pod_labels("web", None) == {"kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": "web"}


def among(spec: dict[str, Any], *hosts: PlacementNode, beside: tuple[PlacementNode, ...] = ()) -> tuple[tuple[str, ...], str]:
    """Return the nodes that a machine fits on, and the refusal; a machine like it is on each node of `beside`."""
    neighbours = tuple(Neighbour("default", WEB, place=each.labels) for each in beside)
    places = tuple(each.labels for each in hosts)
    wanted = from_data({"domain": {"devices": {}}, **spec}, VirtualMachineInstanceSpec)
    found, refusal = fitting(wanted, Neighbour("default", WEB), [PlacementEnvironment(each, neighbours, places=places) for each in hosts])
    return found, refusal.message if refusal is not None else ""


@pytest.mark.spec("kubevirt", 223)
def test_of_several_nodes_those_that_fit_are_named() -> None:
    one, two, three = (PlacementNode(name, {"kubernetes.io/hostname": name, "zone": zone}) for name, zone in zip("abc", "xxy", strict=True))
    cordoned = PlacementNode("b", two.labels, unschedulable=True)
    assert among({}, one, cordoned, three) == (("a", "c"), "")
    assert among({"nodeSelector": {"zone": "x"}}, one, two, three) == (("a", "b"), "")
    assert among({"nodeSelector": {"zone": "y"}}, one, cordoned)[1] == (
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) were unschedulable."
    )
    apart = required("podAntiAffinity", TERM)
    assert among(apart, one, two, three, beside=(one,)) == (("b", "c"), "")
    zones = required("podAntiAffinity", {**TERM, "topologyKey": "zone"})
    assert among(zones, one, two, three, beside=(one,)) == (("c",), "")
    together = required("podAffinity", {**TERM, "topologyKey": "zone"})
    assert among(together, one, two, three, beside=(three,)) == (("c",), "")
    assert among(together, one, two, three) == (("a", "b", "c"), "")
    assert among(spread(), one, two, three, beside=(one,)) == (("c",), "")
    assert among(spread(), one, two, three, beside=(one, three)) == (("a", "b", "c"), "")
    assert among(spread(maxSkew=2), one, two, three, beside=(one,)) == (("a", "b", "c"), "")


_HERE = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["here"]}
_ZONE_B = {"key": "zone", "operator": "In", "values": ["b"]}


def soft_nodes(*wishes: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    terms = [{"weight": weight, "preference": {"matchExpressions": [each]}} for weight, each in wishes]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def soft(kind: str, weight: int, term: dict[str, Any]) -> dict[str, Any]:
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]}}


@pytest.mark.spec("kubevirt", 242)
@pytest.mark.parametrize(
    ("affinity", "wanted"),
    [
        ({}, ("here", "there")),
        (soft_nodes((1, _HERE)), ("here",)),
        (soft_nodes((1, _HERE), (2, _ZONE_B)), ("there",)),
        (soft_nodes((2, _HERE), (1, _ZONE_B)), ("here",)),
        # A wish that no node fulfils chooses none.
        (soft_nodes((9, {"key": "gpu", "operator": "Exists"})), ("here", "there")),
        # Two of these machines are here, and one is there.
        (soft("podAffinity", 1, TERM), ("here",)),
        (soft("podAntiAffinity", 1, TERM), ("there",)),
        (soft("podAffinity", 1, {**TERM, "topologyKey": "rack"}), ("here", "there")),
        (soft("podAntiAffinity", 1, {**TERM, "labelSelector": {"matchLabels": {"app": "db"}}}), ("here", "there")),
        ({**soft("podAntiAffinity", 1, TERM), **soft_nodes((2, _HERE))}, ("here",)),
        ({**soft("podAntiAffinity", 3, TERM), **soft_nodes((2, _HERE))}, ("there",)),
    ],
)
def test_preferences_choose_among_nodes(affinity: dict[str, Any], wanted: tuple[str, ...]) -> None:
    there = PlacementNode("there", {"kubernetes.io/hostname": "there", "zone": "b"})
    neighbours = tuple(Neighbour("default", WEB, place=each.labels) for each in (HOST, HOST, there))
    spec = from_data({"domain": {"devices": {}}, "affinity": affinity}, VirtualMachineInstanceSpec)
    nodes = [PlacementEnvironment(each, neighbours, places=(HOST.labels, there.labels)) for each in (HOST, there)]
    assert preferred(spec, Neighbour("default", WEB), nodes) == wanted
