"""Debian packages as files, and the files in them. What is downloaded is what this host's apt trusts, by checksum."""

import hashlib
import re
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddock.base.descriptors import piped
from paddock.base.images.build import places
from paddock.base.images.build.apt import HOSTS, Options
from paddock.base.images.build.programs import BuildError, need, run

# apt-get download --print-uris: 'http://...' name_1.0_amd64.deb 12345 SHA256:...
_URI = re.compile(r"^'(?P<uri>[^']+)' (?P<file>\S+) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-f]{64})$", re.MULTILINE)


@dataclass(frozen=True)
class Package:
    """A package in the version that apt would install."""

    file: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """Its name alone."""
        return self.file.partition("_")[0]


@dataclass(frozen=True)
class PackageMember:
    """A file of a package: what is in it, or where it points."""

    mode: int
    data: bytes = b""
    target: str = ""


def resolve(names: Sequence[str], apt: Options = HOSTS) -> tuple[Package, ...]:
    """Return the packages that apt would download for these names, in their order."""
    need({"apt-get": "apt", "dpkg-deb": "dpkg"}, "build an image from Debian packages")
    try:
        printed = run(["apt-get", "--quiet", *apt, "download", "--print-uris", *names]).decode()
    except BuildError as error:
        fix = "update the package lists with `apt-get update`; Debian's main archive has them all"
        raise BuildError("cannot find the packages of this image", why=error.why, fix=fix) from error
    return parse_uris(printed, names)


def parse_uris(printed: str, names: Sequence[str]) -> tuple[Package, ...]:
    """The packages that apt named; each name must be there."""
    packages = [Package(match["file"], int(match["size"]), match["sha256"]) for match in _URI.finditer(printed)]
    found = {package.name: package for package in packages}
    if missing := [name for name in names if name not in found]:
        raise BuildError(f"apt offers no {', no '.join(missing)}", fix="update the package lists with `apt-get update`")
    return tuple(found[name] for name in names)


def fetch(packages: Iterable[Package], folder: Path, apt: Options = HOSTS) -> dict[str, Path]:
    """The packages' files, by name; what is there is not downloaded again."""
    with places.alone(folder, "packages"):
        return _fetch({package.name: package for package in packages}, folder, apt)


def _fetch(packages: Mapping[str, Package], folder: Path, apt: Options) -> dict[str, Path]:
    missing = [name for name, package in packages.items() if not _is_there(folder / package.file, package)]
    if missing:
        # The sandbox user of apt may not write where only we may.
        run(["apt-get", "--quiet", *apt, "-o", "APT::Sandbox::User=root", "download", *missing], cwd=folder)
    for name in missing:
        _verify(folder / packages[name].file, packages[name])
    return {name: folder / package.file for name, package in packages.items()}


def _is_there(path: Path, package: Package) -> bool:
    return path.exists() and path.stat().st_size == package.size


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _verify(path: Path, package: Package) -> None:
    if digest(path) != package.sha256:
        path.unlink()
        raise BuildError(f"cannot use {package.file}", why="it is not what apt's lists say", fix="build again; it was removed")


def members(package: Path) -> Iterator[tuple[str, PackageMember]]:
    """Every file and link of a package; names begin without a slash."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as unpacking:
        output = piped(unpacking.stdout)
        with tarfile.open(fileobj=output, mode="r|") as archive:
            for entry in archive:
                name = entry.name.removeprefix("./")
                if entry.isreg():
                    opened = archive.extractfile(entry)
                    yield name, PackageMember(entry.mode, opened.read() if opened else b"")
                elif entry.issym():
                    yield name, PackageMember(entry.mode, target=entry.linkname)
                elif entry.islnk():
                    raise BuildError(f"cannot unpack {package.name}", why=f"{name} is a hard link, which no package had so far")
        # What follows the archive's end is read, so that the child is not ended by a closed pipe.
        output.read()
    if unpacking.returncode:
        raise BuildError(f"cannot unpack {package.name}", fix="remove the file and build again")


def pick(package: Path, wanted: Mapping[str, str]) -> dict[str, PackageMember]:
    """Some files of a package under other names: path in the package -> name. All must be there; links are followed within it."""
    everything = dict(members(package))
    return {name: _followed(everything, path, package) for path, name in wanted.items()}


def _followed(everything: Mapping[str, PackageMember], path: str, package: Path) -> PackageMember:
    for _ in range(8):
        member = everything.get(path)
        if member is None:
            raise BuildError(f"cannot find {path} in {package.name}", why="the package is laid out differently from what is known")
        if not member.target:
            return member
        path = member.target.lstrip("/") if member.target.startswith("/") else str(Path(path).parent / member.target)
    raise BuildError(f"cannot find {path} in {package.name}", why="its links go round in circles")
