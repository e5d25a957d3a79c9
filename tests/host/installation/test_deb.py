"""The Debian package: lintian's verdict, and an installation in a bare release without systemd that ends without a trace of the program."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.host.installation import chroots
from tests.host.installation.chroots import DebianRelease
from tests.host.installation.conftest import BuiltPackage
from tools.packages import deb

pytestmark = pytest.mark.slow


def test_lintian_is_content(tmp_path: Path) -> None:
    if shutil.which("lintian") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("needs lintian: apt install lintian dpkg")
    # Compressed as a release is: lintian has an opinion on that, too.
    words = ["lintian", "--allow-root", "--fail-on", "error,warning", str(deb.build("3.11", tmp_path))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0)


@pytest.mark.parametrize("release", [chroots.BOOKWORM, chroots.TRIXIE], ids=lambda release: release.name)
def test_installed_and_removed(release: DebianRelease, package: BuiltPackage, tmp_path: Path) -> None:
    tar = chroots.archive(release)
    with chroots.unpacked(tar, tmp_path) as root, chroots.running(root) as chroot:
        chroot.run("apt-get", "update", "-qq", online=True)
        installed = chroots.take(root, package(release.python))
        chroot.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", installed, online=True)
        assert json.loads(chroot.run("paddock", "version", "-o", "json"))["commit"]
        assert chroot.run("qemu-system-x86_64", "--version")
        assert "validate\t" in chroot.run("paddock", "__complete", "valid")
        for place in ("etc/default/paddock", "lib/systemd/system/paddock.service", "usr/share/man/man1/paddock.1.gz", "var/lib/paddock"):
            assert (root / place).exists(), place
        assert list((root / "usr/lib/paddock").rglob("*.pyc")), "commands would start slowly"
        (root / "var/lib/paddock/disk").write_text("a guest's")
        words = ("apt-get", "purge", "-y", "-qq", "paddock")
        assert "warning" not in chroot.run("sh", "-c", f"{' '.join(words)} 2>&1")
        assert not (root / "usr/lib/paddock").exists()
        assert not (root / "etc/default/paddock").exists()
        assert (root / "var/lib/paddock/disk").exists(), "disks are nobody's to delete"
