"""Power, sizes, phases, pauses, and the health of Providers as tables (docs/spec/virtrigaud.md 2.1.4, 2.1.5, 3.6, 2.4)."""

import pytest

from paddock.contract.errors import ErrorKind
from paddock.contract.messages import DescribeResponse
from paddock.dialects.virtrigaud.kinds.provider import HealthCheck, ReportedCapabilities
from paddock.dialects.virtrigaud.plan import health, power, references, resizing, retries, status
from paddock.dialects.virtrigaud.plan.health import CheckCounts
from paddock.dialects.virtrigaud.plan.polls import MachinePolls
from paddock.dialects.virtrigaud.plan.power import PowerDecision
from paddock.dialects.virtrigaud.plan.resizing import MachineSizes
from paddock.kubernetes.meta.wire import from_data
from tests.unit.dialects.virtrigaud.plan.made import Data, machine, vmclass

NOTHING = PowerDecision()
POWERS = [
    ("On", "On", None, NOTHING),
    ("On", "Off", None, PowerDecision("on")),
    ("On", "Suspended", None, PowerDecision("on")),
    ("Off", "On", None, PowerDecision("off")),
    ("Off", "Off", None, NOTHING),
    ("Off", "Suspended", None, PowerDecision("off")),
    ("OffGraceful", "On", None, PowerDecision("shutdown")),
    ("OffGraceful", "On", 20.0, PowerDecision(wait=40.0)),
    ("OffGraceful", "On", 60.0, PowerDecision("off", forced=True)),
    ("OffGraceful", "Off", None, NOTHING),
    ("OffGraceful", "Off", 20.0, NOTHING),
    ("OffGraceful", "Suspended", None, PowerDecision("on")),
    ("On", "On", 20.0, NOTHING),
    *((wanted, "Unknown", None, NOTHING) for wanted in ("On", "Off", "OffGraceful")),
]


@pytest.mark.parametrize(("wanted", "observed", "age", "expected"), POWERS)
def test_power(wanted: str, observed: str, age: float | None, expected: PowerDecision) -> None:
    assert power.decide(wanted, observed, shutdown_age=age, timeout=60.0) == expected


def test_no_time_to_shut_down_is_off_at_once() -> None:
    assert power.decide("OffGraceful", "On", shutdown_age=None, timeout=0.0) == PowerDecision("off", forced=True)


@pytest.mark.parametrize(
    ("word", "state"), [("On", "On"), ("poweredOn", "On"), ("running", "On"), ("Off", "Off"), ("SUSPENDED", "Suspended"), ("?", "Unknown")]
)
def test_words_of_providers(word: str, state: str) -> None:
    assert power.known(word) == state


HOT = {"cpuHotAddEnabled": True, "memoryHotAddEnabled": True}
ALL = {"supportsReconfigureOnline": True, "supportsDiskExpansionOnline": True}
NOW = MachineSizes(2, 4096, {"data": 10})
# class, capabilities, disks, running: request, what is pending
SIZES: list[tuple[Data, Data, list[Data], bool, MachineSizes | None, tuple[str, ...]]] = [
    ({}, {}, [{"name": "data", "sizeGiB": 10}], True, None, ()),
    ({"cpu": 4}, {}, [{"name": "data", "sizeGiB": 10}], True, None, ("cpu 2 to 4",)),
    ({"cpu": 4, "performanceProfile": HOT}, {}, [{"name": "data", "sizeGiB": 10}], True, None, ("cpu 2 to 4",)),
    ({"cpu": 4, "performanceProfile": HOT}, ALL, [{"name": "data", "sizeGiB": 10}], True, MachineSizes(4, 4096, {"data": 10}), ()),
    ({"cpu": 1, "performanceProfile": HOT}, ALL, [{"name": "data", "sizeGiB": 10}], True, None, ("cpu 2 to 1",)),
    ({"cpu": 1}, {}, [{"name": "data", "sizeGiB": 10}], False, MachineSizes(1, 4096, {"data": 10}), ()),
    (
        {"cpu": 4, "memory": "2Gi", "performanceProfile": HOT},
        ALL,
        [{"name": "data", "sizeGiB": 10}],
        True,
        MachineSizes(4, 4096, {"data": 10}),
        ("memory 4096 MiB to 2048 MiB",),
    ),
    ({}, ALL, [{"name": "data", "sizeGiB": 11}], True, None, ("disk data 10 GiB to 11 GiB",)),
    ({}, ALL, [{"name": "data", "sizeGiB": 11, "expandPolicy": "Online"}], True, MachineSizes(2, 4096, {"data": 11}), ()),
    ({}, {}, [{"name": "data", "sizeGiB": 11, "expandPolicy": "Online"}], True, None, ("disk data 10 GiB to 11 GiB",)),
    ({}, ALL, [{"name": "data", "sizeGiB": 10}, {"name": "b", "sizeGiB": 3}], True, MachineSizes(2, 4096, {"data": 10, "b": 3}), ()),
    ({}, {}, [{"name": "data", "sizeGiB": 10}, {"name": "b", "sizeGiB": 3}], True, None, ("attach disk b",)),
    ({}, ALL, [], True, MachineSizes(2, 4096, {}), ()),
    ({}, ALL, [{"name": "data", "sizeGiB": 9}], False, None, ()),
]


@pytest.mark.parametrize(("given", "can", "disks", "running", "request_", "pending"), SIZES)
def test_sizes(given: Data, can: Data, disks: list[Data], running: bool, request_: MachineSizes | None, pending: tuple[str, ...]) -> None:
    plan = resizing.decide(NOW, machine(disks=disks), vmclass(**given), from_data(can, ReportedCapabilities), running=running)
    assert (plan.request, plan.pending) == (request_, pending)
    assert plan.refused == (("disk data has 10 GiB and cannot shrink to 9 GiB",) if disks and disks[0]["sizeGiB"] == 9 else ())


def test_an_adopted_machine_keeps_sizes_that_nobody_knows() -> None:
    plan = resizing.decide(MachineSizes(), machine(), vmclass(cpu=64), from_data(ALL, ReportedCapabilities), running=False)
    assert plan == resizing.ResizePlan()


def test_memory_is_floored() -> None:
    assert resizing.mebibytes("1000M") == 953
    assert resizing.wanted(machine(resources={"cpu": 3}), vmclass()) == MachineSizes(3, 4096, {})


@pytest.mark.parametrize(
    ("kind", "reason", "terminal"),
    [
        (ErrorKind.INVALID_SPEC, "ValidationError", True),
        (ErrorKind.NOT_SUPPORTED, "UnsupportedByProvider", True),
        (ErrorKind.CONFLICT, "ProviderConflict", False),
        *((kind, "ProviderError", False) for kind in ErrorKind if kind.value not in ("InvalidSpec", "NotSupported", "Conflict")),
    ],
)
def test_pauses_by_kind(kind: ErrorKind, reason: str, terminal: bool) -> None:
    rule = retries.rule(kind)
    assert (rule.reason, rule.terminal) == (reason, terminal)
    assert rule.first >= 5.0
    if kind == ErrorKind.CONFLICT:
        assert rule.first == 120.0


POLLS = MachinePolls()


@pytest.mark.parametrize(
    ("state", "ips", "settled", "seconds"),
    [
        ("On", ("10.0.0.1",), True, 120.0),
        ("On", (), True, 10.0),
        ("Off", (), True, 300.0),
        ("Suspended", (), True, 120.0),
        ("Off", (), False, 10.0),
        ("?", (), True, 10.0),
    ],
)
def test_polls(state: str, ips: tuple[str, ...], settled: bool, seconds: float) -> None:
    assert status.pause(DescribeResponse(exists=True, power_state=state, ips=ips), POLLS, settled=settled) == seconds


def test_thresholds() -> None:
    check, counts, healthy = HealthCheck(failureThreshold=3, successThreshold=2), CheckCounts(), None
    said: list[bool | None] = []
    for problem in ("", "", "x", "", "x", "x", "x", "", ""):
        counts = counts.after(problem)
        healthy = health.is_healthy(healthy, counts, check)
        said.append(healthy)
    assert said == [None, True, True, True, True, True, False, False, True]


@pytest.mark.parametrize(
    ("annotation", "allowed"), [("", False), ("*", True), ("other, default", True), ("defaults", False), ("other", False)]
)
def test_consent(annotation: str, allowed: bool) -> None:
    assert references.may_use("default", "infra", {"virtrigaud.io/consumer-namespaces": annotation}) == allowed
    assert references.may_use("infra", "infra", {})


def test_providers_words_are_kept_and_own_members_are_not_taken() -> None:
    vm = machine(status={"provider": {"paddock.io/disks": "{}", "old": "1"}})
    raw = '{"host": "a", "paddock.io/disks": "forged", "long": "' + "x" * 5000 + '"}'
    made = status.observed(status.of(vm), DescribeResponse(exists=True, power_state="Suspended", provider_raw_json=raw))
    assert made.provider == {"host": "a", "long": "x" * 1024, "paddock.io/disks": "{}"} and made.powerState is None
    broken = status.observed(status.of(vm), DescribeResponse(exists=True, provider_raw_json="[1"))
    assert broken.provider == {"paddock.io/disks": "{}"}
