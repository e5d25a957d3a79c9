"""The judgement of a host's facts: a host where all is well, and one row for each fact that is not."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddock.app.doctor import judge
from paddock.app.doctor.check import HostChange, HostCheck
from paddock.app.doctor.facts import (
    DirectoryFacts,
    DoctorFacts,
    KernelFacts,
    KvmFacts,
    LimitFacts,
    NetworkFacts,
    QemuFacts,
    ServiceFacts,
    ToolFacts,
    UserFacts,
)

GIB = 1 << 30
PAGE = Path(__file__).parents[4] / "docs" / "run" / "hosts.md"
CHECKS = PAGE.read_text(encoding="utf-8").partition("\n## paddock doctor\n")[2]
QEMU = QemuFacts("/usr/bin/qemu-system-x86_64", (7, 2, 22), "", has_efi=True, has_secure_boot=True)
GOOD = DoctorFacts(
    tools=ToolFacts(
        architecture="amd64",
        qemus={"amd64": QEMU, "arm64": QemuFacts("/usr/bin/qemu-system-aarch64", (10, 0, 2))},
        qemu_img="/usr/bin/qemu-img",
        swtpm="/usr/bin/swtpm",
        virtiofsd="/usr/libexec/virtiofsd",
        nft="/usr/sbin/nft",
        passt="/usr/bin/passt",
    ),
    kvm=KvmFacts(state="real", works=frozenset({"bios", "efi", "smm"}), group="kvm", module="kvm_intel"),
    user=UserFacts(name="root", is_root=True, has_network_rights=True, groups=frozenset({"root"})),
    network=NetworkFacts(bridge=True),
    directory=DirectoryFacts(path="/srv/paddock", exists=True, free_bytes=99 * GIB, inodes=9_000_000, free_inodes=8_000_000),
    limits=LimitFacts(memory=16 * GIB, available=12 * GIB, host_memory=16 * GIB, open_files=65536, control_groups=2, cpu_shares=True),
    kernel=KernelFacts(landlock=4, vhost_net=True, vsock=True),
    service=ServiceFacts(port=7443, clock_synchronized=True),
)
USER = {"user": UserFacts(name="ann", groups=frozenset({"ann"}))}


def facts(**given: Any) -> DoctorFacts:
    """Return the good facts with these replaced: a group of facts as a whole, or its members by a mapping."""
    parts = {name: msgspec.structs.replace(getattr(GOOD, name), **part) if isinstance(part, dict) else part for name, part in given.items()}
    return msgspec.structs.replace(GOOD, **parts)


def outcome(name: str, given: DoctorFacts) -> HostCheck:
    return next(each for each in judge.judge(given) if each.id == name)


def test_a_host_where_all_is_well() -> None:
    checks = judge.judge(GOOD)
    assert judge.shortfalls(checks) == []
    assert judge.worst(checks) == "ok"
    assert judge.at_start(checks) == ""
    assert not any(each.outcome.effect or each.outcome.fix or each.outcome.change for each in checks)


OLD = {"qemus": {"amd64": msgspec.structs.replace(QEMU, version=(6, 2, 0))}}
DEAD = {"qemus": {"amd64": msgspec.structs.replace(QEMU, error="libfoo.so.1 is missing")}}
BARE = {"qemus": {"amd64": msgspec.structs.replace(QEMU, has_efi=False, has_secure_boot=False)}}
ARM = {"architecture": "arm64", "qemus": {"arm64": QemuFacts("/usr/bin/qemu-system-aarch64", (10, 0, 2))}}
UNIT = {"unit": "paddock.service", "kill_mode": "control-group"}
ROWS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("qemu-amd64", "broken", "apt install qemu-system-x86", {"tools": {"qemus": {}}}),
    ("qemu-amd64", "broken", "libfoo.so.1 is missing", {"tools": DEAD}),
    ("qemu-amd64", "broken", "needs QEMU 7.2 or later", {"tools": OLD}),
    ("qemu-amd64", "limited", "architecture amd64 cannot start", {"tools": ARM}),
    ("qemu-arm64", "limited", "apt install qemu-system-arm", {"tools": {"qemus": {"amd64": QEMU}}}),
    ("qemu-img", "broken", "apt install qemu-utils", {"tools": {"qemu_img": ""}}),
    ("firmware", "limited", "apt install ovmf", {"tools": BARE}),
    ("firmware", "broken", "this architecture needs UEFI", {"tools": ARM}),
    ("secure-boot", "limited", "secureBoot: false", {"tools": BARE}),
    ("swtpm", "limited", "devices.tpm", {"tools": {"swtpm": ""}}),
    ("virtiofsd", "limited", "devices.filesystems", {"tools": {"virtiofsd": ""}}),
    ("kvm", "limited", "modprobe kvm_intel", {"kvm": {"state": "absent"}}),
    ("kvm", "limited", "nested virtualization", {"kvm": {"state": "absent", "module": ""}}),
    ("kvm", "limited", "usermod -aG kvm ann", {"kvm": {"state": "forbidden"}, **USER}),
    ("kvm", "limited", "--device /dev/kvm", {"kvm": {"state": "forbidden"}}),
    ("kvm", "limited", "interprets instructions in software", {"kvm": {"state": "emulated"}}),
    ("kvm", "limited", "does not work: it hangs", {"kvm": {"state": "broken", "detail": "it hangs"}}),
    ("kvm", "limited", "guests with Secure Boot are emulated", {"kvm": {"works": {"bios", "efi"}, "why": {"smm": "no SMM"}}}),
    ("kvm-group", "limited", "usermod -aG kvm ann", {"kvm": {"state": "forbidden"}, **USER}),
    ("kvm-group", "limited", "a server of ann cannot", {"user": UserFacts(name="root", is_root=True, has_network_rights=True, sudo="ann")}),
    ("hypervisors", "limited", "modprobe -r vboxdrv", {"kernel": {"hypervisors": ("vboxdrv",)}}),
    ("network-rights", "broken", "NET_ADMIN", {"user": {"has_network_rights": False}}),
    ("network-rights", "limited", "user-mode network", {**USER, "network": {"rootless": "no pasta", "rootless_fix": "install it"}}),
    (
        "network-rights",
        "limited",
        "install it; or run Paddock as root",
        {**USER, "network": {"rootless": "no pasta", "rootless_fix": "install it"}},
    ),
    ("nft", "limited", "apt install nftables", {"tools": {"nft": ""}}),
    ("tun", "limited", "modprobe tun", {"network": {"tun": "absent"}}),
    ("tun", "limited", "--device /dev/net/tun", {"network": {"tun": "forbidden"}}),
    ("bridge", "broken", "modprobe bridge", {"network": {"bridge": False}}),
    ("reverse-path", "broken", "rp_filter=2", {"network": {"reverse_path": 1}}),
    ("forwarding", "limited", "DOCKER-USER", {"network": {"forward_dropped": True}}),
    ("passt", "limited", "apt install passt", {"tools": {"passt": ""}}),
    ("namespaces", "limited", "not permitted", {"network": {"namespaces": "not permitted"}}),
    ("namespaces", "limited", "as root where guests are not trusted", {"network": {"namespaces": "not root"}, **USER}),
    ("port", "limited", "--listen 127.0.0.1:0", {"service": {"port_use": "taken"}}),
    ("port", "limited", "may not listen on 7443", {"service": {"port_use": "forbidden"}}),
    ("directory", "broken", "read-only", {"directory": {"is_read_only": True}}),
    ("directory", "broken", "may not write", {"directory": {"is_writable": False}}),
    ("directory", "limited", "chmod go-w /srv/paddock", {"directory": {"mode": 0o777}}),
    ("space", "broken", "10 MiB are free", {"directory": {"free_bytes": 10 << 20}}),
    ("space", "limited", "1.0 GiB are free", {"directory": {"free_bytes": GIB}}),
    ("inodes", "broken", "100 inodes are free", {"directory": {"free_inodes": 100}}),
    ("inodes", "limited", "some tens of files", {"directory": {"free_inodes": 5000}}),
    ("memory", "broken", "hardly any guest fits", {"limits": {"available": 100 << 20}}),
    ("memory", "limited", "limit of the control group", {"limits": {"memory": GIB, "available": GIB}}),
    ("control-groups", "limited", "limits of CPU, memory and I/O", {"limits": {"control_groups": 0}}),
    ("control-groups", "limited", "this user may not", {"limits": {"control_groups": 0}, **USER}),
    ("cpu-shares", "limited", "no control groups share the processors", {"limits": {"cpu_shares": False}}),
    ("cpu-shares", "limited", "systemd-run --user --scope paddock up", {"limits": {"cpu_shares": False}, **USER}),
    ("open-files", "limited", "LimitNOFILE", {"limits": {"open_files": 1024}}),
    ("landlock", "limited", "lsm=landlock", {"kernel": {"landlock": 0}}),
    ("user-namespaces", "limited", "AppArmor or sysctl", {"kernel": {"user_namespaces": False}, **USER}),
    ("vhost", "limited", "use a kernel that has", {"kernel": {"vhost_net": False}}),
    ("vhost", "limited", "modprobe -a vhost_vsock", {"kernel": {"vsock": False, "loadable": {"vhost_vsock"}}}),
    ("clock", "broken", "the clock says 1970", {"service": {"year": 1970}}),
    ("clock", "limited", "is not synchronized", {"service": {"clock_synchronized": False}}),
    ("access-control", "limited", "ausearch", {"kernel": {"selinux": "enforcing"}}),
    ("access-control", "limited", "docker-default", {"kernel": {"apparmor": "docker-default (enforce)"}}),
    ("unit", "broken", "KillMode=process", {"service": UNIT, **USER}),
]


@pytest.mark.parametrize(("name", "state", "words", "given"), ROWS, ids=[f"{row[0]}-{row[2]}" for row in ROWS])
def test_a_fact_that_is_not_well(name: str, state: str, words: str, given: dict[str, Any]) -> None:
    found = outcome(name, facts(**given))
    assert found.outcome.state == state
    assert words in found.sentence
    # What it means, and one way to mend it, are always said.
    assert found.outcome.effect and found.outcome.fix


WELL: list[tuple[str, dict[str, Any]]] = [
    # Firmware that is not installed, and what an architecture has not, are no shortcomings of KVM.
    ("kvm", {"kvm": {"works": {"bios"}, "why": {"efi": "the firmware is not installed", "smm": "this architecture has no SMM"}}}),
    ("kvm-group", USER),
    ("kvm-group", {"kvm": {"state": "forbidden"}, "user": UserFacts(name="ann", groups=frozenset({"kvm"}))}),
    ("network-rights", USER),
    # An unprivileged user needs nothing of what only root's networks use.
    *((name, {**USER, "tools": {"nft": ""}, "network": {"tun": "absent", "bridge": False, "reverse_path": 1}}) for name in ("nft", "tun")),
    *((name, {**USER, "network": {"bridge": False, "reverse_path": 1, "forward_dropped": True}}) for name in ("bridge", "reverse-path")),
    ("bridge", {"network": {"bridge": None}}),
    ("libvirt-network", {"network": {"libvirt": ("192.168.122.0/24 (virbr0)",)}}),
    ("inodes", {"directory": {"inodes": 0, "free_inodes": 0}}),
    ("directory", {"directory": {"exists": False, "mode": 0o777}}),
    ("port", {"service": {"port_use": "ours", "port": 40001}}),
    ("user-namespaces", {"kernel": {"user_namespaces": False}}),
    ("unit", {"service": {**UNIT, "kill_mode": "process"}, **USER}),
    # As root, guests have control groups outside of the unit.
    ("unit", {"service": UNIT}),
    ("clock", {"service": {"clock_synchronized": None}}),
]


@pytest.mark.parametrize(("name", "given"), WELL)
def test_a_fact_that_harms_nothing(name: str, given: dict[str, Any]) -> None:
    assert outcome(name, facts(**given)).outcome.state == "ok"


def test_every_check_has_a_row_that_fails() -> None:
    # It has nothing that could be wrong: Paddock goes around what it finds.
    assert {row[0] for row in ROWS} == set(judge.CHECKS) - {"libvirt-network"}


def test_what_a_start_says_is_one_line() -> None:
    refused = {"rootless": "user.max_user_namespaces is 0", "rootless_fix": "sysctl -w user.max_user_namespaces=16384"}
    given = facts(**USER, tools={"swtpm": "", "qemus": {"amd64": QEMU}}, kvm={"state": "absent", "module": ""}, network=refused)
    line = judge.at_start(judge.judge(given))
    assert line == (
        "not available here: arm64 machines, TPMs, KVM (guests are emulated, and slow), addresses of machines' own "
        "(user.max_user_namespaces is 0; to lift it: sysctl -w user.max_user_namespaces=16384); `paddock doctor` says why and what helps"
    )


def test_changes_are_proposed_only_where_they_can_help() -> None:
    given = facts(
        kvm={"state": "absent"}, kernel={"vhost_net": False, "vsock": False, "loadable": {"vhost_net"}}, directory={"mode": 0o722}
    )
    changes = [each.outcome.change for each in judge.shortfalls(judge.judge(given))]
    assert [each.argv for each in changes if each is not None] == [
        ("modprobe", "kvm_intel"),
        ("chmod", "go-w", "/srv/paddock"),
        ("modprobe", "-a", "vhost_net"),
    ]
    assert HostChange(("modprobe", "kvm_intel"), "load the kernel module kvm_intel") in changes


@pytest.mark.parametrize("name", judge.CHECKS)
def test_the_page_has_a_row_for_each_check(name: str) -> None:
    subject = judge.CHECKS[name][0]
    assert re.search(rf"^\| `{name}` \| {re.escape(subject)} \| [^|]+ \| [^|]+ \|$", CHECKS, re.MULTILINE)


def test_the_page_has_no_row_of_another_check() -> None:
    assert set(re.findall(r"^\| `([a-z0-9-]+)` \| ", CHECKS, re.MULTILINE)) == set(judge.CHECKS)


def test_types_of_conditions() -> None:
    assert judge.condition_type("qemu-arm64") == "QemuArm64Limited"
    assert len({judge.condition_type(name) for name in judge.CHECKS}) == len(judge.CHECKS)
