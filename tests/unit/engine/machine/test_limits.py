"""Control groups of both versions, as directories that only look like them."""

from pathlib import Path

import pytest

from paddock.engine.machine.config import CpuConfig, MachineConfig, MemoryConfig
from paddock.engine.machine.limits import Hierarchies, apply, enclose, find, remove, usual


def test_what_a_host_has() -> None:
    mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\nproc /proc proc rw 0 0\n"
    found = find(mounts, "2:cpu,cpuacct:/a/b\n1:name=systemd:/x\n0::/c:d\n")
    assert found == Hierarchies(
        {"cpu": Path("/sys/fs/cgroup/cpu/a/b"), "cpuacct": Path("/sys/fs/cgroup/cpu/a/b")}, Path("/sys/fs/cgroup/unified/c:d")
    )


@pytest.mark.parametrize(
    ("limit", "files"),
    [
        (("cpu.max", "150000 100000"), {"cpu.cfs_quota_us": "150000", "cpu.cfs_period_us": "100000"}),
        (("cpu.max", "max"), {"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}),
        (("cpu.weight", "100"), {"cpu.shares": "1024"}),
    ],
)
def test_version_1(tmp_path: Path, limit: tuple[str, str], files: dict[str, str]) -> None:
    place = Hierarchies({"cpu": tmp_path}, None)
    assert apply(place, "a", 42, dict([limit])) == []
    group = tmp_path / "paddock" / "a"
    assert {path.name: path.read_text() for path in group.iterdir()} == {**files, "cgroup.procs": "42"}


def test_version_2_before_version_1(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    (second / "cgroup.controllers").write_text("cpu io\n")
    (second / "cgroup.subtree_control").write_text("")
    assert apply(Hierarchies({"cpu": first}, second), "a", 42, {"cpu.max": "1 2"}) == []
    assert (second / "paddock" / "a" / "cpu.max").read_text() == "1 2" and not list(first.iterdir())
    assert (second / "cgroup.subtree_control").read_text() == "+cpu"


def test_what_cannot_be_kept_is_said(tmp_path: Path) -> None:
    assert apply(Hierarchies({}, None), "a", 1, {"cpu.max": "1 2"}) == ["cpu.max=1 2 is not kept: this host has no control groups for cpu"]
    (said,) = apply(Hierarchies({"io": tmp_path}, None), "a", 1, {"io.weight": "5"})
    assert "version 1 has no such limit" in said
    (tmp_path / "file").write_text("")
    (said,) = apply(Hierarchies({"cpu": tmp_path / "file"}, None), "a", 1, {"cpu.max": "1 2"})
    assert "Not a directory" in said


def test_removed(tmp_path: Path) -> None:
    (tmp_path / "paddock" / "a").mkdir(parents=True)
    remove(Hierarchies({"cpu": tmp_path}, None), "a")
    remove(Hierarchies({"cpu": tmp_path}, None), "a")
    assert not (tmp_path / "paddock").exists()


@pytest.mark.parametrize("own", ["system.slice/paddock.service", "user.slice/user-0.slice/session-3.scope"])
def test_groups_lie_outside_of_a_unit_of_systemd(own: str) -> None:
    mounts = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
    assert find(mounts, f"0::/{own}\n").second == Path("/sys/fs/cgroup")


def test_every_machine_has_a_group_and_limits_where_the_host_has_some(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    (second / "cgroup.controllers").write_text("memory\n")
    (second / "cgroup.subtree_control").write_text("")
    both = Hierarchies({"pids": first, "name=systemd": tmp_path / "units"}, second)
    assert enclose(both, "a", [42], {"memory.high": "5", "pids.max": "6", "cpu.max": "7"})
    assert {path.name: path.read_text() for path in (second / "paddock" / "a").iterdir()} == {"memory.high": "5", "cgroup.procs": "42"}
    assert (first / "paddock" / "a" / "pids.max").read_text() == "6"
    assert (tmp_path / "units" / "paddock" / "a" / "cgroup.procs").read_text() == "42"
    (tmp_path / "file").write_text("")
    assert not enclose(Hierarchies({}, tmp_path / "file"), "a", [42], {})


def test_no_healthy_machine_comes_near_to_its_limits() -> None:
    config = MachineConfig("a", CpuConfig(max_sockets=4, cores=2), MemoryConfig(1 << 30, 4 << 30))
    found = usual(config)
    assert int(found["memory.high"]) >= 2 * (4 << 30) and int(found["pids.max"]) > 1000 and "memory.max" not in found
