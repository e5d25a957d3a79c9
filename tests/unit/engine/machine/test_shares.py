"""Namespaces share the processors by weight: the groups of their machines, in directories that only look like control groups."""

from pathlib import Path

import pytest

from paddock.engine.machine.config import CpuConfig, MachineConfig, MemoryConfig
from paddock.engine.machine.limits import Hierarchies, find
from paddock.engine.machine.shares import NamespaceShares


def config(namespace: str = "acme", sockets: int = 1) -> MachineConfig:
    return MachineConfig(f"{namespace}_web", CpuConfig(sockets=sockets), MemoryConfig(1 << 27, 1 << 27))


def second(root: Path) -> Hierarchies:
    for each in (root, root / "paddock"):
        each.mkdir(exist_ok=True)
        (each / "cgroup.controllers").write_text("cpu memory pids\n")
        (each / "cgroup.subtree_control").write_text("")
    return Hierarchies({}, root)


@pytest.mark.spec("kubevirt", 256)
@pytest.mark.parametrize("version", [1, 2])
def test_machines_lie_in_the_group_of_their_namespace(tmp_path: Path, version: int) -> None:
    groups = second(tmp_path) if version == 2 else Hierarchies({"cpu": tmp_path}, None)
    shares = NamespaceShares(groups, Path("/var/lib/paddock/machines"))
    shares.weigh({"acme": 300})
    assert shares.enclose("a", config(sockets=2), [42]) and shares.enclose("b", config("other"), [43])
    acme, other = (tmp_path / "paddock" / shares.namespace_group(each) for each in ("acme", "other"))
    name, of = ("cpu.weight", 1) if version == 2 else ("cpu.shares", 10.24)
    assert [(place / name).read_text() for place in (acme, other, acme / "a", other / "b")] == [
        str(int(weight * of)) for weight in (300, 100, 200, 100)
    ]
    assert [(place / "cgroup.procs").read_text() for place in (acme / "a", other / "b")] == ["42", "43"]
    assert not (tmp_path / "paddock" / name).exists(), "together, guests weigh no more than anything else: the host stays awake"
    if version == 2:
        assert all((each / "cgroup.subtree_control").read_text() for each in (tmp_path, tmp_path / "paddock", acme))
    shares.weigh({"other": 50})
    assert [(place / name).read_text() for place in (acme, other)] == [str(int(weight * of)) for weight in (100, 50)]


@pytest.mark.spec("kubevirt", 256)
def test_two_directories_have_groups_of_their_own(tmp_path: Path) -> None:
    groups = Hierarchies({"cpu": tmp_path}, None)
    one, two = (NamespaceShares(groups, Path(each)) for each in ("/one", "/two"))
    assert one.namespace_group("default") != two.namespace_group("default")
    (tmp_path / "paddock" / one.namespace_group("default") / "a").mkdir(parents=True)
    (tmp_path / "paddock" / two.namespace_group("default") / "b").mkdir(parents=True)
    one.sweep()
    assert [each.name for each in (tmp_path / "paddock").iterdir()] == [two.namespace_group("default")]
    two.sweep()
    assert not (tmp_path / "paddock").exists()


@pytest.mark.spec("kubevirt", 256)
def test_the_group_of_a_namespace_goes_with_its_last_machine(tmp_path: Path) -> None:
    shares = NamespaceShares(Hierarchies({"cpu": tmp_path}, None), tmp_path / "machines")
    for each in ("a", "b"):
        (tmp_path / "paddock" / shares.group(each, config())).mkdir(parents=True)
    shares.remove("a", config())
    assert (tmp_path / "paddock" / shares.group("b", config())).is_dir()
    shares.remove("b", config())
    assert not (tmp_path / "paddock").exists()


@pytest.mark.spec("kubevirt", 256)
def test_a_host_that_forbids_groups_keeps_no_machine_from_running(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for groups in (Hierarchies({}, None), Hierarchies({"cpu": tmp_path / "file"}, None)):
        shares = NamespaceShares(groups, tmp_path)
        shares.weigh({"acme": 5})
        shares.enclose("a", config(), [42])
        shares.remove("a", config())
        shares.sweep()
        assert not shares.are_kept or groups.first


@pytest.mark.parametrize(
    ("own", "is_root", "place"),
    [
        ("user.slice/user-7.slice/user@7.service/app.slice/run-1.scope", False, "user.slice/user-7.slice/user@7.service"),
        ("user.slice/user-7.slice/user@7.service/app.slice/run-1.scope", True, ""),
        ("user.slice/user-7.slice/session-3.scope", False, ""),
    ],
)
def test_a_user_has_groups_where_its_systemd_may_delegate(own: str, is_root: bool, place: str) -> None:
    mounts = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
    assert find(mounts, f"0::/{own}\n", is_root=is_root).second == Path("/sys/fs/cgroup") / place
