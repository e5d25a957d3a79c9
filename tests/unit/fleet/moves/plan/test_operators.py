"""The signs of an operator at the target: leases, and the status of machines."""

from typing import Any

import pytest

from paddock.fleet.moves.plan import operators
from paddock.kubernetes.meta import ages

Data = dict[str, Any]
NOW = 1_800_000_000.0


def lease(name: str = "paddock-operator-vitistack", holder: str = "pod", ago: float = 3) -> Data:
    spec = {"holderIdentity": holder, "renewTime": ages.micro_timestamp(NOW - ago)}
    return {"metadata": {"name": name, "namespace": "paddock-system"}, "spec": spec}


def machine(ago: float, **status: str) -> Data:
    metadata = {"name": "node", "namespace": "prod", "creationTimestamp": ages.timestamp(NOW - ago)}
    return {"metadata": metadata, "status": status}


@pytest.mark.parametrize(
    ("leases", "machines", "said"),
    [
        ([lease()], [], ""),
        ([lease(ago=-40)], [], ""),
        ([lease("other-vitistack", ago=9999), lease()], [], ""),
        ([lease(holder="")], [], "nobody holds the lease paddock-system/paddock-operator-vitistack"),
        ([lease(ago=400)], [machine(5)], "nobody holds the lease"),
        ([lease("paddock-operator-stakater")], [], "there is no lease of one"),
        ([], [machine(7200)], "prod/node, made 120m ago, has no status"),
        (None, [machine(7200)], "prod/node, made 120m ago, has no status"),
        ([], [machine(5)], "there is no lease of one"),
        ([], [machine(7200, phase="Running")], ""),
        (None, [machine(7200, phase="Running")], ""),
    ],
)
def test_an_operator_is_known_by_its_signs(leases: list[Data] | None, machines: list[Data], said: str) -> None:
    found = operators.missing("machines.vitistack.io", "vitistack", leases, machines, NOW)
    assert said in found.text and bool(found.text) is bool(said) and found.is_certain


@pytest.mark.parametrize(
    ("leases", "machines", "said"),
    [
        # One that `paddock operator` left, before another program took over.
        (
            [lease(holder="")],
            [machine(9999, phase="Running")],
            "perhaps no operator looks after machines.vitistack.io at the target: nobody",
        ),
        ([lease(ago=400)], [machine(9999, phase="Running")], "perhaps no operator"),
        ([], [machine(7200), machine(9999, phase="Running")], "perhaps no operator looks after machines.vitistack.io at the target: prod/"),
    ],
)
def test_signs_that_contradict_each_other_are_a_doubt(leases: list[Data], machines: list[Data], said: str) -> None:
    found = operators.missing("machines.vitistack.io", "vitistack", leases, machines, NOW)
    assert found.text.startswith(said) and not found.is_certain


def test_a_paused_machine_is_no_sign() -> None:
    paused = machine(7200)
    paused["metadata"]["annotations"] = {"crossplane.io/paused": "true"}
    assert operators.missing("virtualmachines", "stakater", [], [paused, machine(7200, phase="Running")], NOW).text == ""


def test_what_the_user_may_not_see_is_a_doubt() -> None:
    found = operators.missing("machines.vitistack.io", "vitistack", None, [], NOW)
    assert found.text.startswith("you may not see whether an operator looks after machines.vitistack.io") and not found.is_certain
