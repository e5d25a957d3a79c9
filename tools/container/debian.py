"""The Debian part of an image: which packages, and their files. Maintainer scripts do not run, and no root is needed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddock.base.images.build import apt, packages
from paddock.base.images.build.packages import Package, PackageMember
from paddock.base.images.build.programs import BuildError, run
from tools.container import elf, recipes

_INSTALLED = re.compile(r"^Inst (?P<name>\S+) ", re.MULTILINE)


@dataclass(frozen=True)
class DebianPackage:
    """A package, its control file, and those of its files that an image takes."""

    package: Package
    control: str
    files: Mapping[str, PackageMember]

    @property
    def name(self) -> str:
        """Its name alone."""
        return self.package.name

    @property
    def version(self) -> str:
        """Its version."""
        return self.field("Version")

    def field(self, name: str) -> str:
        """Return a field of the control file; empty if it has none of the name."""
        return next((line.partition(": ")[2] for line in self.control.splitlines() if line.startswith(f"{name}: ")), "")


def candidates(names: Sequence[str], cache: Path) -> Mapping[str, Path]:
    """Return the files of these packages and of all that they depend on, by name, in the versions that apt would install into nothing."""
    options = apt.options(cache, names)
    empty = cache / "nothing-installed"
    cache.mkdir(parents=True, exist_ok=True)
    empty.write_text("")
    simulated = run(
        ["apt-get", "--quiet", *options, "-o", f"Dir::State::status={empty}", "install", "--simulate", "--no-install-recommends", *names]
    )
    found = sorted({*_INSTALLED.findall(simulated.decode()), *names})
    return packages.fetch(packages.resolve(found, options), cache / "packages", options)


def read(name: str, path: Path) -> DebianPackage:
    """Return a package with the files that an image takes, at their places in it."""
    files = {}
    for found, member in packages.members(path):
        where = recipes.place(found)
        if not recipes.is_left_out(where):
            files[where] = member
    control = run(["dpkg-deb", "--field", path]).decode()
    digest = packages.digest(path)
    return DebianPackage(Package(path.name, path.stat().st_size, digest), control, files)


def certificates(path: Path) -> bytes:
    """Return the bundle of the authorities that Debian trusts."""
    found = {name: member.data for name, member in packages.members(path) if name.endswith(".crt")}
    return b"".join(data.rstrip(b"\n") + b"\n" for _, data in sorted(found.items()))


def select(wanted: Sequence[str], known: Mapping[str, Path], others: Mapping[str, bytes]) -> Sequence[DebianPackage]:
    """Return the wanted packages and those whose libraries they and the `others` need, directly or not. Raises `BuildError`."""
    chosen = {name: read(name, known[name]) for name in wanted}
    rest = {name: read(name, path) for name, path in sorted(known.items()) if name not in chosen}
    lacking = unresolved(chosen.values(), others)
    while lacking:
        found = {name: each for name, each in rest.items() if lacking & libraries(each)}
        if not found:
            raise BuildError(f"no package brings {', '.join(sorted(lacking))}", fix="name the package in tools/container/recipes.py")
        chosen |= found
        rest = {name: each for name, each in rest.items() if name not in found}
        lacking = unresolved(chosen.values(), others)
    return [chosen[name] for name in sorted(chosen)]


def unresolved(chosen: Iterable[DebianPackage], others: Mapping[str, bytes]) -> frozenset[str]:
    """Return the libraries that somebody needs and nobody brings. `others`: the files besides those of packages."""
    there = set(_libraries(others))
    needed = {name for data in others.values() for name in elf.needed(data)}
    for each in chosen:
        there |= libraries(each)
        needed |= {name for member in each.files.values() for name in elf.needed(member.data)}
    return frozenset(needed - there)


def libraries(package: DebianPackage) -> frozenset[str]:
    """Return the names of a package's libraries."""
    return _libraries(package.files)


def _libraries(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(name for name in (path.rpartition("/")[2] for path in paths) if ".so" in name)
