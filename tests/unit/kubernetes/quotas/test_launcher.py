"""The requests and limits of launchers are those that KubeVirt 1.9 gives them."""

from typing import Any

import pytest

from paddock.base import quantity
from paddock.kubernetes.quotas import launcher, usage

MIB = 1 << 20


def spec(domain: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"domain": {"devices": {}, **domain}, **more}


# what is asked for beside 1Gi of requested memory and one vCPU, and the overhead in MiB
OVERHEADS = [
    ({}, {}, 270),
    ({"devices": {"autoattachGraphicsDevice": False}}, {}, 238),
    ({"cpu": {"cores": 2, "sockets": 2, "threads": 2}}, {}, 326),
    ({"devices": {"tpm": {}}}, {}, 323),
    ({"devices": {"tpm": {"enabled": False}}}, {}, 270),
    ({"devices": {"hostDevices": [{"name": "a", "deviceName": "example.com/a"}]}}, {}, 1294),
    ({"cpu": {"cores": 1, "dedicatedCpuPlacement": True}}, {}, 370),
    ({"launchSecurity": {"sev": {}}}, {}, 526),
    ({}, {"architecture": "arm64"}, 398),
    ({}, {"livenessProbe": {"exec": {"command": ["a"]}}}, 380),
    ({}, {"livenessProbe": {"exec": {}}, "readinessProbe": {"exec": {"command": ["a"]}}}, 390),
    ({"memory": {"reservedOverhead": {"addedOverhead": "10Mi"}}}, {}, 280),
]


@pytest.mark.spec("kubevirt", 156)
@pytest.mark.parametrize(("domain", "more", "overhead"), OVERHEADS)
def test_the_overhead_of_memory(domain: dict[str, Any], more: dict[str, Any], overhead: int) -> None:
    asked = spec({"resources": {"requests": {"memory": "1Gi"}}, **domain}, **more)
    # KubeVirt reckons the page tables in thousands of bytes.
    assert launcher.memory_overhead(asked) // MIB == overhead


def shown(amounts: dict[str, int]) -> dict[str, str]:
    return {name: quantity.canonical(amount, in_binary="memory" in name or "hugepages" in name) for name, amount in amounts.items()}


def test_a_tenth_of_a_processor_and_the_memory_with_its_overhead() -> None:
    found = launcher.resources_of(spec({"cpu": {"cores": 4}, "memory": {"guest": "1Gi"}}))
    assert shown(found.requests) == {"memory": "1316Mi", "cpu": "400m", "ephemeral-storage": "50M"}
    assert (shown(found.limits), shown(found.implied)) == ({}, {"cpu": "4", "memory": "2632Mi"})


def test_what_the_machine_asks_for_is_kept() -> None:
    resources = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "3", "memory": "2Gi"}, "overcommitGuestOverhead": True}
    found = launcher.resources_of(spec({"cpu": {"cores": 4}, "resources": resources}))
    assert shown(found.requests) | {} == {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "50M"}
    assert (shown(found.limits)["cpu"], found.implied) == ("3", {})


def test_dedicated_processors_are_requested_whole() -> None:
    cpu = {"cores": 2, "dedicatedCpuPlacement": True, "isolateEmulatorThread": True}
    found = launcher.resources_of(spec({"cpu": cpu, "memory": {"guest": "1Gi"}}))
    assert (shown(found.requests)["cpu"], shown(found.limits)["cpu"]) == ("3", "3")


def test_huge_pages_hold_the_guest() -> None:
    memory = {"guest": "1Gi", "hugepages": {"pageSize": "2Mi"}}
    found = launcher.resources_of(spec({"memory": memory, "resources": {"requests": {"memory": "1Gi"}}}))
    assert shown(found.requests)["hugepages-2Mi"] == "1Gi" and found.requests["memory"] // (MIB * quantity.UNIT) == 270


def test_devices_count_by_their_names() -> None:
    instance = {
        "spec": spec({"devices": {"gpus": [{"name": "a", "deviceName": "nvidia.com/T4"}, {"name": "b", "deviceName": "nvidia.com/T4"}]}})
    }
    assert usage.of_new_instance(instance)["requests.nvidia.com/T4"] == 2 * quantity.UNIT


PHASES = [("", False, False), ("Pending", False, False), ("Scheduling", True, True), ("Running", True, True), ("Succeeded", False, True)]


@pytest.mark.parametrize(("phase", "takes", "has_pod"), PHASES)
def test_an_instance_counts_from_its_pod_to_its_end(phase: str, takes: bool, has_pod: bool) -> None:
    found = usage.of_instance({"spec": spec({"cpu": {"cores": 2}, "memory": {"guest": "1Gi"}}), "status": {"phase": phase}})
    assert (found.get("requests.cpu/vmi") == 2 * quantity.UNIT, usage.COUNT in found) == (takes, has_pod)


def test_memory_that_the_guest_has_not_given_back_counts() -> None:
    status = {"phase": "Running", "memory": {"guestCurrent": "4Gi"}}
    found = usage.of_instance({"spec": spec({"memory": {"guest": "1Gi"}}), "status": status})
    assert found["memory/vmi"] == quantity.parse("4Gi")
