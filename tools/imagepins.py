"""Writes pins of known images from the lists of checksums that distributions publish: `python -m tools.imagepins NAME ARCH --keys DIR`.

Only recipes with an address for each build are here: what stands under `latest` may change, and cannot be pinned. A recipe with a
fingerprint is refused unless exactly that key has signed the list. Print the entries, look at them, and put them into
src/paddock/base/images/pins.toml.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Fetch = Callable[[str], bytes]


class PinRefused(Exception):
    """A list of checksums cannot be trusted, or lacks the image."""


@dataclass(frozen=True)
class PinRecipe:
    """The place of an image's builds. `build` finds the folder of one in the listing; its group is the release."""

    listing: str
    build: str
    file: str
    sums: str
    algorithm: str
    signature: str = ""
    # of the key that signs; the signature is not looked at without one
    fingerprint: str = ""


_UBUNTU_KEY = "D2EB44626FDDC30B513D5BB71A5D6C4C7DB87C81"
_DEBIAN = "https://cloud.debian.org/images/cloud"
_UBUNTU = "https://cloud-images.ubuntu.com/releases"
RECIPES = {
    **{
        f"debian-{number}": PinRecipe(
            f"{_DEBIAN}/{word}/", r'href="(\d{8}-\d+)/"', f"debian-{number}-genericcloud-{{arch}}-{{release}}.qcow2", "SHA512SUMS", "sha512"
        )
        for number, word in ((12, "bookworm"), (13, "trixie"))
    },
    **{
        f"ubuntu-{number}": PinRecipe(
            f"{_UBUNTU}/{word}/",
            r'href="release-(\d{8}(?:\.\d+)?)/"',
            f"ubuntu-{number}-server-cloudimg-{{arch}}.img",
            "SHA256SUMS",
            "sha256",
            "SHA256SUMS.gpg",
            _UBUNTU_KEY,
        )
        for number, word in (("22.04", "jammy"), ("24.04", "noble"))
    },
}


def entry(name: str, architecture: str, recipe: PinRecipe, fetch: Fetch, keys: Path) -> str:
    """Return the newest build's entry of the file of pins; raises `PinRefused`."""
    listing = fetch(recipe.listing).decode()
    builds = sorted((match[1], match[0]) for match in re.finditer(recipe.build, listing))
    if not builds:
        raise PinRefused(f"no build of {name} in {recipe.listing}")
    release, link = builds[-1]
    folder = recipe.listing + link.removeprefix('href="').removesuffix('"')
    sums = fetch(folder + recipe.sums)
    if recipe.fingerprint:
        check_signature(sums, fetch(folder + recipe.signature), keys, recipe.fingerprint)
    file = recipe.file.format(arch=architecture, release=release)
    digest = checksums(sums.decode()).get(file)
    if digest is None:
        raise PinRefused(f"{folder}{recipe.sums} lacks {file}")
    evidence = f"{recipe.sums} of the build{', its signature checked' if recipe.fingerprint else ', which has no signature'}"
    lines = (f'release = "{release}"', f'url = "{folder}{file}"', f'checksum = "{recipe.algorithm}:{digest}"')
    return "\n".join((f'["{name}".{architecture}]', *lines, f'signed_by = "{recipe.fingerprint}"', f'evidence = "{evidence}"')) + "\n"


def checksums(text: str) -> dict[str, str]:
    """Return the checksums of a list by file: `HEX  FILE`, `HEX *FILE`, or `SHA256 (FILE) = HEX`."""
    found = {}
    for line in text.splitlines():
        usual = re.fullmatch(r"([0-9a-f]{64,128}) [ *](\S+)", line)
        tagged = re.fullmatch(r"SHA\d+ \((\S+)\) = ([0-9a-f]{64,128})", line)
        if usual:
            found[usual[2]] = usual[1]
        elif tagged:
            found[tagged[1]] = tagged[2]
    return found


def check_signature(signed: bytes, signature: bytes, keys: Path, fingerprint: str) -> None:
    """Check a detached signature by a key of a folder; raises `PinRefused` unless it is this key's and good."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        (Path(folder) / "signed").write_bytes(signed)
        (Path(folder) / "signature").write_bytes(signature)
        gpg = ["gpg", "--homedir", str(home), "--batch", "--no-autostart", "--status-fd", "1"]
        subprocess.run([*gpg, "--import", *map(str, sorted(keys.iterdir()))], check=False, capture_output=True)
        command = [*gpg, "--verify", f"{folder}/signature", f"{folder}/signed"]
        told = subprocess.run(command, check=False, capture_output=True, text=True)
    good = [line.split() for line in told.stdout.splitlines() if line.startswith("[GNUPG:] VALIDSIG ")]
    # The second word is the key that signed, the last one its primary key.
    if told.returncode != 0 or not any(fingerprint in (words[2], words[-1]) for words in good):
        raise PinRefused(f"the list of checksums has no good signature of {fingerprint}: {told.stderr.strip()}")


def _fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return bytes(answer.read())


def main(arguments: list[str] | None = None) -> int:
    """Print an entry."""
    options = argparse.ArgumentParser(prog="python -m tools.imagepins", description=__doc__)
    options.add_argument("name", choices=sorted(RECIPES))
    options.add_argument("architecture", choices=("amd64", "arm64"))
    options.add_argument("--keys", type=Path, default=Path("/usr/share/keyrings"), help="folder with the public keys of distributions")
    parsed = options.parse_args(arguments)
    try:
        print(entry(parsed.name, parsed.architecture, RECIPES[parsed.name], _fetched, parsed.keys), end="")
    except (PinRefused, OSError) as error:
        print(f"imagepins: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
