"""The Debian package: lintian's verdict, and an installation in a bare Debian 12 that ends without a trace of the program."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.packages import deb

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("dpkg-deb") is None:
        pytest.skip("needs dpkg-deb: apt install dpkg")
    return deb.build("3.11", tmp_path_factory.mktemp("deb"))


@pytest.fixture(scope="module")
def bookworm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A bare Debian 12."""
    if shutil.which("debootstrap") is None or os.geteuid() != 0:
        pytest.skip("needs root and debootstrap: apt install debootstrap")
    root = tmp_path_factory.mktemp("bookworm")
    done = subprocess.run(
        ["debootstrap", "--variant=minbase", "bookworm", str(root), "http://deb.debian.org/debian"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"needs a mirror of Debian: {done.stdout.strip().splitlines()[-1]}")
    shutil.copyfile("/etc/resolv.conf", root / "etc/resolv.conf")
    subprocess.run(["mount", "-t", "proc", "proc", str(root / "proc")], check=True)
    yield root
    subprocess.run(["umount", str(root / "proc")], check=True)
    shutil.rmtree(root)


def inside(root: Path, *words: str) -> str:
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}
    done = subprocess.run(["chroot", str(root), *words], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def test_lintian_is_content(package: Path) -> None:
    if shutil.which("lintian") is None:
        pytest.skip("needs lintian: apt install lintian")
    done = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error,warning", str(package)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("", 0)


def test_installed_and_removed(package: Path, bookworm: Path) -> None:
    shutil.copyfile(package, bookworm / "root" / package.name)
    inside(bookworm, "apt-get", "update", "-qq")
    inside(bookworm, "apt-get", "install", "-y", "-qq", "--no-install-recommends", f"/root/{package.name}")
    assert json.loads(inside(bookworm, "paddock", "version", "-o", "json"))["commit"]
    assert inside(bookworm, "qemu-system-x86_64", "--version")
    assert "validate\t" in inside(bookworm, "paddock", "__complete", "valid")
    for place in ("etc/default/paddock", "lib/systemd/system/paddock.service", "usr/share/man/man1/paddock.1.gz", "var/lib/paddock"):
        assert (bookworm / place).exists(), place
    assert list((bookworm / "usr/lib/paddock").rglob("*.pyc")), "commands would start slowly"
    (bookworm / "var/lib/paddock/disk").write_text("a guest's")
    inside(bookworm, "apt-get", "purge", "-y", "-qq", "paddock")
    assert not (bookworm / "usr/lib/paddock").exists()
    assert not (bookworm / "etc/default/paddock").exists()
    assert (bookworm / "var/lib/paddock/disk").exists(), "disks are nobody's to delete"
