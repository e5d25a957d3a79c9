"""Control groups of both versions, as directories that only look like them."""

from pathlib import Path

import pytest

from paddock.engine.machine.limits import Hierarchies, apply, find, remove


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
