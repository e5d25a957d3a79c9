"""The environment of its own that packages carry: Paddock and what requirements.lock names, below /usr/lib/paddock, for Debian's Python."""

import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from tools.packages import wheel

LIB = Path("usr/lib/paddock")
PROGRAMS = {"paddock": "main", "kubectl-paddock": "main", "kubectl_complete-paddock": "complete"}
# Debian's name of an architecture -> that of wheels
PLATFORMS = {"amd64": "x86_64", "arm64": "aarch64"}


def site(root: Path, python: str) -> Path:
    """Return the folder of the Python packages below a root."""
    return root / LIB / f"lib/python{python}/site-packages"


def install(root: Path, built: Path, python: str, machine: str, without: Collection[str] = ()) -> None:
    """Install the wheel of Paddock, and the locked packages but those named, each checked against its hash."""
    place = site(root, python)
    platforms = [word for name in ("manylinux_2_17", "manylinux2014", "manylinux_2_28") for word in ("--platform", f"{name}_{machine}")]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--target", str(place), "--no-compile"]
    common = ["--python-version", python, "--implementation", "cp", "--only-binary", ":all:", *platforms]
    lock = wheel.runtime_lock(place.parent, without)
    subprocess.run([*pip, *common, "--no-deps", "--require-hashes", "-r", str(lock)], check=True)
    subprocess.run([*pip, *common, "--no-deps", "--upgrade", str(built)], check=True)
    lock.unlink()
    # What the wheel brings for a prefix has a place of its own in a package; nobody installs with these records.
    for name in ("share", "bin"):
        shutil.rmtree(place / name, ignore_errors=True)
    for each in place.rglob("direct_url.json"):
        each.unlink()
    for each in place.rglob("tests"):
        shutil.rmtree(each)
    for record in place.glob("*.dist-info/RECORD"):
        _forget_missing(record)


def _forget_missing(record: Path) -> None:
    """Keep what a package's record says of the files that are left. One of them named the folder of this build."""
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(line for line in lines if (record.parents[1] / line.split(",")[0]).exists()))


def interpreter(root: Path, python: str) -> None:
    """Write the links to Debian's interpreter, and the file that makes a folder an environment."""
    place = root / LIB
    (place / "bin").mkdir(parents=True)
    for name in ("python", "python3", f"python{python}"):
        (place / "bin" / name).symlink_to(f"../../../bin/python{python}")
    (place / "pyvenv.cfg").write_text(f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {python}\n")


def programs(root: Path, names: Collection[str] = tuple(PROGRAMS)) -> None:
    """Write the programs into /usr/bin; the kernel starts them without a shell."""
    folder = root / "usr/bin"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        text = f"#!/{LIB}/bin/python3\nimport sys\n\nfrom paddock.app.main import {PROGRAMS[name]}\n\nsys.exit({PROGRAMS[name]}())\n"
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
