"""`make deb`: a Debian package of the program with the Python packages that it needs, for the Python of one release.

Debian 12 has neither msgspec nor a recent h2, so the package carries what requirements.lock names, in an environment of its own below
/usr/lib/paddock. Its interpreter is Debian's. dpkg-deb alone puts the package together: debhelper would add a build system to what is a
copy of wheels.
"""

import argparse
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.packages import environment, wheel

ROOT = Path(__file__).resolve().parents[2]
# Python of a release -> the folder of systemd's units: Debian 13 has no package any more that owns /lib.
PYTHONS = {"3.11": "lib/systemd/system", "3.13": "usr/lib/systemd/system"}
_PARTS = ROOT / "deploy" / "debian"
_COMPLETION = {
    "bash/paddock": "usr/share/bash-completion/completions/paddock",
    "zsh/_paddock": "usr/share/zsh/vendor-completions/_paddock",
    "fish/paddock.fish": "usr/share/fish/vendor_completions.d/paddock.fish",
}
_USER_UNITS = "usr/lib/systemd/user"


def main(given: list[str] | None = None) -> int:
    """Build the package and print its path."""
    options = argparse.ArgumentParser(prog="python -m tools.packages.deb", description=__doc__)
    options.add_argument("--python", choices=PYTHONS, default="3.11", help="Python of the release to build for (default: 3.11)")
    options.add_argument("--output", type=Path, default=ROOT / "dist", help="directory to write to (default: dist)")
    parsed = options.parse_args(given)
    if shutil.which("dpkg-deb") is None:
        print("deb: there is no dpkg-deb here; it comes with Debian's package dpkg", file=sys.stderr)
        return 1
    print(build(parsed.python, parsed.output))
    return 0


def build(python: str, output: Path, compression: str = "xz") -> Path:
    """Return the built package. `compression` is one that dpkg-deb knows; "none" saves a minute of a processor."""
    output.mkdir(parents=True, exist_ok=True)
    machine = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="paddock-deb-") as made:
        folder = Path(made)
        built = wheel.build(folder / "wheel")
        version = built.name.split("-")[1]
        root = folder / "root"
        environment.install(root, built, python, environment.PLATFORMS[machine])
        environment.interpreter(root, python)
        environment.programs(root)
        _beside(root, PYTHONS[python])
        _documents(root, version)
        _control(root, version, python, machine)
        _modes(root)
        target = output / f"paddock_{version}_{machine}.deb"
        # xz of one thread and times of the commit give the same bytes each time.
        variables = {**os.environ, "SOURCE_DATE_EPOCH": str(wheel.commit_time())}
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "--threads-max=1", f"-Z{compression}", "--build", str(root), str(target)],
            check=True,
            env=variables,
            stdout=subprocess.DEVNULL,
        )
    return target


def _beside(root: Path, units_folder: str) -> None:
    units = ROOT / "deploy" / "systemd"
    shells = ROOT / "src/paddock/cli/completion/shells"
    pairs = [
        (each, f"{place}/{each.name}")
        for kind, place in (("system", units_folder), ("user", _USER_UNITS))
        for each in sorted((units / kind).glob("*.service"))
    ]
    pairs += [(shells / name, place) for name, place in _COMPLETION.items()]
    pairs += [(_PARTS / "default", "etc/default/paddock"), (_PARTS / "lintian-overrides", "usr/share/lintian/overrides/paddock")]
    for source, place in pairs:
        _copy(source, root / place)
    for page in sorted((ROOT / "deploy" / "man").glob("*.1")):
        _zip(page.read_bytes(), root / "usr/share/man/man1" / f"{page.name}.gz")
    for program in list(environment.PROGRAMS)[1:]:
        (root / "usr/share/man/man1" / f"{program}.1.gz").symlink_to("paddock.1.gz")


def _documents(root: Path, version: str) -> None:
    folder = root / "usr/share/doc/paddock"
    _copy(_PARTS / "copyright", folder / "copyright")
    _copy(_PARTS / "README.Debian", folder / "README.Debian")
    day = subprocess.run(["date", "-R", "-u", "-d", f"@{wheel.commit_time()}"], capture_output=True, text=True, check=True).stdout.strip()
    entry = f"paddock ({version}) stable; urgency=medium\n\n  * The changes are listed in CHANGELOG.md.\n\n -- {_maintainer()}  {day}\n"
    _zip(entry.encode(), folder / "changelog.gz")
    _zip((ROOT / "CHANGELOG.md").read_bytes(), folder / "CHANGELOG.md.gz")


def _maintainer() -> str:
    return next(
        line.removeprefix("Maintainer: ") for line in (_PARTS / "control").read_text().splitlines() if line.startswith("Maintainer: ")
    )


def _control(root: Path, version: str, python: str, machine: str) -> None:
    folder = root / "DEBIAN"
    folder.mkdir()
    size = sum(path.lstat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink()) // 1024
    major, minor = python.split(".")
    values = {"version": version, "architecture": machine, "size": str(size), "python": python, "next": f"{major}.{int(minor) + 1}"}
    text = (_PARTS / "control").read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    (folder / "control").write_text(text)
    (folder / "conffiles").write_text("/etc/default/paddock\n")
    for name in ("postinst", "prerm", "postrm"):
        _copy(_PARTS / name, folder / name)
        (folder / name).chmod(0o755)
    sums = (f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in _files(root))
    (folder / "md5sums").write_text("".join(sums))


def _files(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink() and "DEBIAN" not in path.parts:
            yield path


def _modes(root: Path) -> None:
    for path in root.rglob("*"):
        if path.is_symlink():
            continue
        is_program = path.is_dir() or path.parent == root / "usr/bin" or (path.parent.name == "DEBIAN" and path.stat().st_mode & 0o100)
        path.chmod(0o755 if is_program else 0o644)
    root.chmod(0o755)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _zip(data: bytes, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(data, 9, mtime=0))


if __name__ == "__main__":
    sys.exit(main())
