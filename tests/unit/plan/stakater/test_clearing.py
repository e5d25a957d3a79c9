"""The order in which everything goes, as a table."""

import itertools

import pytest

from paddock.plan.stakater.clearing import ClearStep, RemainingKinds, stalls_at, step

ALL = {"services", "machines", "volumes", "secrets"}


@pytest.mark.parametrize(
    ("left", "wanted"),
    [
        (RemainingKinds(services=("s",), machines=("m",), secrets=("k",), standing=frozenset(ALL)), ClearStep.DELETE_SERVICE),
        (RemainingKinds(services=("s",), machines=("m",), standing=frozenset({"machines"})), ClearStep.WAIT),
        (RemainingKinds(machines=("m",), instances=("m",), volumes=("d",), standing=frozenset(ALL)), ClearStep.DELETE_MACHINE),
        (RemainingKinds(machines=("m",), volumes=("d",), standing=frozenset({"volumes", "secrets"})), ClearStep.WAIT),
        (RemainingKinds(instances=("m",), secrets=("k",), standing=frozenset({"secrets"})), ClearStep.WAIT),
        (RemainingKinds(volumes=("d",), claims=("d",), secrets=("k",), standing=frozenset({"volumes", "secrets"})), ClearStep.DELETE_DISKS),
        (RemainingKinds(claims=("d",), secrets=("k",), standing=frozenset({"secrets"})), ClearStep.WAIT),
        (RemainingKinds(secrets=("k",), standing=frozenset({"secrets"})), ClearStep.DELETE_SECRETS),
        (RemainingKinds(secrets=("k",)), ClearStep.WAIT),
        (RemainingKinds(), ClearStep.LET_GO),
    ],
)
def test_the_next_step(left: RemainingKinds, wanted: ClearStep) -> None:
    assert step(left) is wanted


def test_nothing_is_let_go_while_anything_is_left() -> None:
    members = ("services", "machines", "instances", "volumes", "claims", "secrets")
    for count in range(1, len(members) + 1):
        for some in itertools.combinations(members, count):
            left = RemainingKinds(**dict.fromkeys(some, ("x",)))  # type: ignore[arg-type]  # names
            assert step(left) is ClearStep.WAIT
            assert left.named().count("x") == count


def test_a_deletion_stalls_two_minutes_after_its_grace() -> None:
    assert stalls_at(1000.0, 180) == 1300.0
