"""The need of a restart for a change of a machine, before anything runs."""

from typing import Any

import pytest

from paddock.kubevirt.plan.changes import rollouts

Data = dict[str, Any]


def spec(**domain: Any) -> Data:
    hardware = domain.pop("hardware", {})
    return {"template": {"spec": {"domain": {"devices": {}, "cpu": {"sockets": 1}, "memory": {"guest": "1Gi"}, **domain}, **hardware}}}


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (spec(), ""),
        (spec(hardware={"architecture": "amd64"}), ""),
        (spec(machine={"type": "q35"}), ""),
        (spec(hardware={"architecture": "arm64"}), "non-live-updatable"),
        (spec(cpu={"sockets": 4}), ""),
        (spec(cpu={"sockets": 5}), "higher than what's available"),
        (spec(cpu={"sockets": 1, "cores": 2}), "non-live-updatable"),
        (spec(memory={"guest": "4Gi"}), ""),
        (spec(memory={"guest": "512Mi"}), "lower than what the VM started with"),
    ],
)
def test_what_needs_a_restart(after: Data, reason: str) -> None:
    found = rollouts.restart_reason(spec(), after)
    assert reason in found and bool(reason) == bool(found)


def test_more_cpus_of_ones_own_need_a_restart() -> None:
    pinned = {"sockets": 1, "dedicatedCpuPlacement": True}
    assert "CPUs of its own" in rollouts.restart_reason(spec(cpu=pinned), spec(cpu={**pinned, "sockets": 2}))
    assert rollouts.restart_reason(spec(cpu=pinned), spec(cpu=pinned)) == ""


def test_growth_is_judged_for_itself() -> None:
    after = spec(cpu={"sockets": 2, "cores": 2}, memory={"guest": "8Gi"})
    assert rollouts.growth_reason(spec(), after, rollouts.SOCKETS) == ""
    assert "higher" in rollouts.growth_reason(spec(), after, rollouts.GUEST)


@pytest.mark.parametrize("secure", [True, None, False])
def test_processors_are_plugged_under_every_firmware(secure: bool | None) -> None:
    firmware = {"bootloader": {"efi": {} if secure is None else {"secureBoot": secure}}}
    assert rollouts.growth_reason(spec(firmware=firmware), spec(firmware=firmware, cpu={"sockets": 2}), rollouts.SOCKETS) == ""


def on(claim: str, strategy: str | None = "Migration", **disk: Any) -> Data:
    volumes = [{"name": "root", "dataVolume": {"name": claim}}, {"name": "seed", "cloudInitNoCloud": {"userData": "x"}}]
    made = spec(devices={"disks": [{"name": "root", "disk": {"bus": "virtio"}, **disk}]}, hardware={"volumes": volumes})
    return {**made, "updateVolumesStrategy": strategy}


@pytest.mark.spec("kubevirt", 233)
@pytest.mark.parametrize(
    ("before", "after", "moved", "reason"),
    [
        (on("a"), on("b"), ["root"], ""),
        (on("a"), on("a"), [], ""),
        (on("a"), on("b", "Replacement"), [], "non-live-updatable"),
        (on("a"), on("b", None), [], "non-live-updatable"),
        (on("a", shareable=True), on("b", shareable=True), ["root"], "invalid volumes to update with migration: shareable: [root]"),
    ],
)
def test_volumes_move_while_the_machine_runs(before: Data, after: Data, moved: list[str], reason: str) -> None:
    assert rollouts.moved(before, after) == moved
    found = rollouts.restart_reason(before, after)
    assert reason in found and bool(reason) == bool(found)
