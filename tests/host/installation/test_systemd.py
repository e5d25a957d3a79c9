"""The Debian package under a real systemd: stops, restarts, upgrades, removals and a reboot, with a guest that runs.

systemd is the first process of a Debian 12 in namespaces of its own, as on a host.
"""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.host.conftest import wait_until
from tests.host.installation import chroots
from tests.host.installation.chroots import Chroot
from tests.host.installation.conftest import BuiltPackage

pytestmark = [pytest.mark.slow, pytest.mark.needs("root", "qemu", "mmdebstrap", "tun")]
_UPTIME = ("cat", "/proc/uptime")
_MAIN_PID = ("systemctl", "show", "paddock", "-p", "MainPID", "--value")
_NEXT = "0.1.1"
_SECOND_BOOT, _THIRD_BOOT = "00000000-0000-4000-8000-000000000002", "00000000-0000-4000-8000-000000000003"
_UNIT_OF_USER = "sleeper"


@contextmanager
def prepared(package: Path, folder: Path) -> Iterator[Path]:
    """The files of a Debian 12 with what the package depends on, the package, and the guest in root's cache."""
    with chroots.unpacked(chroots.archive(chroots.BOOKWORM, chroots.HOSTING), folder) as root:
        chroots.take(root, package)
        chroots.take_guest(root)
        yield root


@pytest.fixture(scope="module")
def host(package: BuiltPackage, tiny_guest: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chroot]:
    """The Debian, booted, with the package installed and one guest that runs under its service. Each test leaves it like that."""
    with prepared(package("3.11"), tmp_path_factory.mktemp("systemd")) as files, chroots.running(files, systemd=True) as chroot:
        chroot.run("apt-get", "install", "-y", "-qq", f"/root/{package('3.11').name}")
        assert chroot.run("systemctl", "is-active", "paddock") == "active\n"
        chroot.run("paddock", "run", "tiny", "--name", "web")
        yield chroot


def newer(package: Path, folder: Path) -> Path:
    """Return the same package with the next version."""
    subprocess.run(["dpkg-deb", "-R", str(package), str(folder / "next")], check=True)
    control = folder / "next/DEBIAN/control"
    control.write_text(control.read_text().replace("Version: 0.1.0\n", f"Version: {_NEXT}\n"))
    target = folder / f"paddock_{_NEXT}.deb"
    subprocess.run(["dpkg-deb", "-Znone", "--build", str(folder / "next"), str(target)], check=True, stdout=subprocess.DEVNULL)
    return target


def uptime(chroot: Chroot) -> float:
    """Return how long the guest has been up, as its agent says."""
    return float(chroot.in_guest("web", *_UPTIME).split()[0])


def test_the_service_stops_and_starts_without_its_guests(host: Chroot) -> None:
    ((qemu, group),) = host.qemus().items()
    # Outside of the unit: systemd ends what is in the unit.
    assert "paddock.service" not in group and group.startswith("/paddock/")
    up, server = uptime(host), host.run(*_MAIN_PID)
    host.run("systemctl", "restart", "paddock")
    assert host.run(*_MAIN_PID) != server
    host.run("systemctl", "stop", "paddock")
    assert host.attempt("systemctl", "is-active", "paddock").stdout == "inactive\n"
    assert list(host.qemus()) == [qemu]
    assert host.run("systemctl", "is-active", "paddock-guests") == "active\n"
    host.run("systemctl", "start", "paddock")
    assert uptime(host) > up and list(host.qemus()) == [qemu]
    assert host.run("systemctl", "show", "paddock", "-p", "Result", "-p", "NRestarts").split() == ["Result=success", "NRestarts=0"]


def test_where_guests_cannot_leave_the_unit_only_the_server_gets_the_signal(host: Chroot) -> None:
    ((qemu, _),) = host.qemus().items()
    unit = "/sys/fs/cgroup/system.slice/paddock.service/cgroup.procs"
    host.run("sh", "-c", f"echo {qemu} > {unit}")
    host.run("systemctl", "stop", "paddock")
    assert list(host.qemus()) == [qemu]
    host.run("systemctl", "start", "paddock")
    assert uptime(host) > 0


def test_a_server_that_dies_comes_back_and_adopts(host: Chroot) -> None:
    up, server, qemus = uptime(host), host.run(*_MAIN_PID).strip(), list(host.qemus())
    host.run("kill", "-KILL", server)
    wait_until("systemd starts it again", lambda: host.run(*_MAIN_PID).strip() not in (server, "0"), 60)
    wait_until("it is ready", lambda: host.attempt("paddock", "status").returncode == 0, 60)
    assert uptime(host) > up and list(host.qemus()) == qemus


def test_an_upgrade_replaces_the_server_and_no_guest(host: Chroot, package: BuiltPackage, tmp_path: Path) -> None:
    up, server, qemus = uptime(host), host.run(*_MAIN_PID), list(host.qemus())
    host.run("apt-get", "install", "-y", "-qq", chroots.take(host.root, newer(package("3.11"), tmp_path)))
    assert host.run("dpkg-query", "-W", "-f", "${Version}", "paddock") == _NEXT
    assert host.run("systemctl", "is-active", "paddock") == "active\n" and host.run(*_MAIN_PID) != server
    assert uptime(host) > up and list(host.qemus()) == qemus


def test_a_removal_leaves_guests_disks_and_objects(host: Chroot, package: BuiltPackage) -> None:
    up, qemus = uptime(host), list(host.qemus())
    (host.root / "etc/default/paddock").write_text('PADDOCK_OPTIONS="--image-retention 8"\n')
    host.run("apt-get", "remove", "-y", "-qq", "paddock")
    assert list(host.qemus()) == qemus and host.attempt("pgrep", "-f", "paddock up").stdout == ""
    assert not (host.root / "usr/bin/paddock").exists() and not (host.root / "usr/lib/paddock").exists()
    assert (host.root / "etc/default/paddock").exists() and list((host.root / "var/lib/paddock").iterdir())
    host.run("apt-get", "purge", "-y", "-qq", "paddock")
    assert list(host.qemus()) == qemus and list((host.root / "var/lib/paddock").iterdir())
    left = ("etc/default/paddock", "etc/systemd/system/multi-user.target.wants/paddock.service", "lib/systemd/system/paddock.service")
    assert [name for name in left if (host.root / name).is_symlink() or (host.root / name).exists()] == []
    # What is left is enough for a new installation to go on where the old one was.
    host.run("apt-get", "install", "-y", "-qq", f"/root/{package('3.11').name}")
    assert uptime(host) > up and list(host.qemus()) == qemus


def test_the_unit_of_a_user(host: Chroot) -> None:
    host.run("useradd", "--create-home", _UNIT_OF_USER)
    host.run("loginctl", "enable-linger", _UNIT_OF_USER)
    number = host.run("id", "-u", _UNIT_OF_USER).strip()

    def own(*words: str) -> str:
        return host.run("env", f"XDG_RUNTIME_DIR=/run/user/{number}", *words, user=_UNIT_OF_USER)

    wait_until("the user's systemd answers", lambda: host.attempt("test", "-S", f"/run/user/{number}/systemd/private").returncode == 0, 60)
    configuration = host.root / f"home/{_UNIT_OF_USER}/.config/paddock"
    own("mkdir", "-p", f"/home/{_UNIT_OF_USER}/.config/paddock")
    (configuration / "environment").write_text('PADDOCK_OPTIONS="--listen 127.0.0.1:7543"\n')
    own("systemctl", "--user", "enable", "--now", "paddock-guests", "paddock")
    guest = host.root / f"home/{_UNIT_OF_USER}/tiny.qcow2"
    guest.write_bytes(next((host.root / "root/.cache/paddock/guests").glob("tiny-*/tiny.qcow2")).read_bytes())
    before = set(host.qemus())
    own("paddock", "run", f"/home/{_UNIT_OF_USER}/tiny.qcow2", "--name", "mine", "--memory", "192Mi")
    (qemu,) = set(host.qemus()) - before
    own("systemctl", "--user", "restart", "paddock")
    assert qemu in host.qemus()
    assert host.in_guest("mine", "hostname", user=_UNIT_OF_USER) == "mine\n"
    own("systemctl", "--user", "stop", "paddock")
    assert qemu in host.qemus()
    # The end of the user's systemd is that of a host to the user's guests, whether the server runs or not.
    host.run("systemctl", "stop", f"user@{number}")
    assert qemu not in host.qemus() and went_down(host.root, "mine", f"home/{_UNIT_OF_USER}/.local/state/paddock")
    host.run("systemctl", "start", f"user@{number}")
    assert host.in_guest("mine", "hostname", user=_UNIT_OF_USER) == "mine\n"
    own("paddock", "rm", "mine", "--yes")
    host.run("loginctl", "disable-linger", _UNIT_OF_USER)


def went_down(files: Path, name: str, place: str = "var/lib/paddock") -> bool:
    """Return True if the kernel of a guest has said on the serial console that it powers down."""
    for config in (files / place / "engine/machines").glob("*/config.json"):
        if f'"default_{name}"' in config.read_text():
            return b"reboot: Power down" in (config.parent / "run/serial.log").read_bytes()
    raise AssertionError(f"there is no machine {name}")


def test_guests_shut_down_with_the_host_and_start_after_the_boot(package: BuiltPackage, tiny_guest: object, tmp_path: Path) -> None:
    with prepared(package("3.11"), tmp_path) as files:
        with chroots.running(files, systemd=True) as first:
            first.run("apt-get", "install", "-y", "-qq", f"/root/{package('3.11').name}")
            assert first.run("systemctl", "is-active", "paddock-guests") == "active\n"
            first.run("paddock", "run", "tiny", "--name", "web")
            for name, strategy in (("rerun", "RerunOnFailure"), ("idle", "Halted")):
                manifest = first.run("paddock", "run", "tiny", "--name", name, "--dry-run", "-o", "yaml")
                (files / "root/vm.yaml").write_text(re.sub("runStrategy: .*", f"runStrategy: {strategy}", manifest))
                first.run("paddock", "apply", "-f", "/root/vm.yaml")
            first.in_guest("rerun", "hostname")
            first.power_off()
        assert went_down(files, "web") and went_down(files, "rerun")
        # No power-off: the power fails.
        with chroots.running(files, systemd=True, boot=_SECOND_BOOT) as second:
            runs_again(second)
        with chroots.running(files, systemd=True, boot=_THIRD_BOOT) as third:
            runs_again(third)
            third.run("paddock", "down", "--purge", "--delete-data", "--yes")
            assert third.qemus() == {} and not (files / "var/lib/paddock/server/store.db").exists()


def runs_again(host: Chroot) -> None:
    """The machines run that ran before the boot, and no other."""
    wait_until("the machines run again", lambda: len(host.qemus()) == 2, 300)
    assert [host.in_guest(name, "hostname") for name in ("web", "rerun")] == ["web\n", "rerun\n"]
    (idle,) = (line for line in host.run("paddock", "ls").splitlines() if "idle" in line)
    assert "Stopped" in idle
