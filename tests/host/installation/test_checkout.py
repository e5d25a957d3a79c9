"""A checkout on another release: its environment from the lock file, the demonstration, and a part of the tests."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.host.installation import chroots
from tools.demo.sight import GUESTS

pytestmark = [pytest.mark.slow, pytest.mark.needs("root", "qemu", "mmdebstrap", "tun")]
_ROOT = Path(__file__).resolve().parents[3]
_PACKAGES = (*chroots.HOSTING, "python3-venv", "git", "make", "ca-certificates")
_AUTHORITIES = "etc/ssl/certs/ca-certificates.crt"
# Python 3.13 verifies certificates in another way than the versions before.
_SAMPLE = ("tests/unit/base/test_certificates.py", "tests/unit/app/test_secure.py", "tests/unit/app/test_envtest.py")


def test_the_demonstration_and_tests_run_from_a_checkout_on_debian_13(tiny_guest: object, tmp_path: Path) -> None:
    with chroots.unpacked(chroots.archive(chroots.TRIXIE, _PACKAGES), tmp_path) as root, chroots.running(root) as chroot:
        chroots.take_guest(root)
        # pip trusts whom this host trusts.
        shutil.copyfile(os.environ.get("PIP_CERT", f"/{_AUTHORITIES}"), root / _AUTHORITIES)
        subprocess.run(["git", "clone", "--quiet", _ROOT, root / "src"], check=True)
        chroot.run("apt-get", "update", "-qq", online=True)
        chroot.run("env", "PADDOCK_HOST_PACKAGES=demo", "make", "-C", "/src", "setup", online=True)
        # No terminal: it shows all guests, and takes itself away.
        said = chroot.run("make", "-C", "/src", "demo")
        assert re.search(rf"^{len(GUESTS)} guests of 5 dialects run and answer after \d+ s", said, re.MULTILINE), said
        assert "nothing of it is left" in said and chroot.qemus() == {}
        tested = chroot.run("sh", "-c", f"cd /src && .venv/bin/python -m pytest -q -p no:cacheprovider {' '.join(_SAMPLE)} 2>&1")
        print(said, tested[-300:])
