"""Signed lists of checksums, by keys that the test makes: the right key, another one, and a list that was changed."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from tools import imagepins

pytestmark = pytest.mark.needs("gpg")
FILE = "disk-amd64-20250301.img"


def _gpg(home: Path, *words: str) -> bytes:
    command = ["gpg", "--homedir", str(home), "--batch", "--yes", "--pinentry-mode", "loopback", "--passphrase", "", *words]
    return subprocess.run(command, check=True, capture_output=True).stdout


def _key(home: Path, keys: Path) -> str:
    """Make a key; returns its fingerprint."""
    home.mkdir(mode=0o700)
    keys.mkdir(exist_ok=True)
    _gpg(home, "--quick-generate-key", f"{home.name}@example.test", "ed25519", "sign", "never")
    (keys / f"{home.name}.gpg").write_bytes(_gpg(home, "--export"))
    told = _gpg(home, "--with-colons", "--list-keys").decode()
    return next(line.split(":")[9] for line in told.splitlines() if line.startswith("fpr"))


def test_only_the_right_key_and_an_unchanged_list_make_a_pin(work: Path) -> None:
    keys = work / "keys"
    home, other = work / "one", work / "other"
    try:
        fingerprint, another = _key(home, keys), _key(other, keys)
        sums = f"{hashlib.sha256(b'x').hexdigest()}  {FILE}\n".encode()
        (work / "SUMS").write_bytes(sums)
        _gpg(home, "--detach-sign", "--output", str(work / "SUMS.gpg"), str(work / "SUMS"))
        pages = {"https://x/": b'href="20250301/"', "https://x/20250301/SUMS": sums}
        pages["https://x/20250301/SUMS.gpg"] = (work / "SUMS.gpg").read_bytes()
        recipe = imagepins.PinRecipe(
            "https://x/", r'href="(\d{8})/"', "disk-{arch}-{release}.img", "SUMS", "sha256", "SUMS.gpg", fingerprint
        )
        made = imagepins.entry("one", "amd64", recipe, pages.__getitem__, keys)
        assert f'signed_by = "{fingerprint}"' in made and "signature checked" in made
        wrong = recipe.__class__(**{**vars(recipe), "fingerprint": another})
        with pytest.raises(imagepins.PinRefused, match="no good signature"):
            imagepins.entry("one", "amd64", wrong, pages.__getitem__, keys)
        pages["https://x/20250301/SUMS"] = sums.replace(b"20250301", b"20250302")
        with pytest.raises(imagepins.PinRefused, match="no good signature"):
            imagepins.entry("one", "amd64", recipe, pages.__getitem__, keys)
    finally:
        for each in (home, other):
            subprocess.run(["gpgconf", "--homedir", str(each), "--kill", "all"], check=False)
