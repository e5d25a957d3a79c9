"""The order in which everything goes, as a table."""

import itertools

import pytest

from paddock.plan.stakater.clearing import Left, Step, stalls_at, step

ALL = {"services", "machines", "volumes", "secrets"}


@pytest.mark.parametrize(
    ("left", "wanted"),
    [
        (Left(services=("s",), machines=("m",), secrets=("k",), standing=frozenset(ALL)), Step.DELETE_SERVICE),
        (Left(services=("s",), machines=("m",), standing=frozenset({"machines"})), Step.WAIT),
        (Left(machines=("m",), instances=("m",), volumes=("d",), standing=frozenset(ALL)), Step.DELETE_MACHINE),
        (Left(machines=("m",), volumes=("d",), standing=frozenset({"volumes", "secrets"})), Step.WAIT),
        (Left(instances=("m",), secrets=("k",), standing=frozenset({"secrets"})), Step.WAIT),
        (Left(volumes=("d",), claims=("d",), secrets=("k",), standing=frozenset({"volumes", "secrets"})), Step.DELETE_DISKS),
        (Left(claims=("d",), secrets=("k",), standing=frozenset({"secrets"})), Step.WAIT),
        (Left(secrets=("k",), standing=frozenset({"secrets"})), Step.DELETE_SECRETS),
        (Left(secrets=("k",)), Step.WAIT),
        (Left(), Step.LET_GO),
    ],
)
def test_the_next_step(left: Left, wanted: Step) -> None:
    assert step(left) is wanted


def test_nothing_is_let_go_while_anything_is_left() -> None:
    members = ("services", "machines", "instances", "volumes", "claims", "secrets")
    for count in range(1, len(members) + 1):
        for some in itertools.combinations(members, count):
            left = Left(**dict.fromkeys(some, ("x",)))  # type: ignore[arg-type]  # names
            assert step(left) is Step.WAIT
            assert left.named().count("x") == count


def test_a_deletion_stalls_two_minutes_after_its_grace() -> None:
    assert stalls_at(1000.0, 180) == 1300.0
