"""Assembles an image: Debian's files, the locked packages, Paddock; then the archive and its bill of materials."""

import json
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from paddock.base.images.build import places
from paddock.base.images.build.programs import BuildError, need, run
from tools.container import debian, oci, recipes
from tools.container.debian import DebianPackage
from tools.container.recipes import ContainerRecipe
from tools.packages import bill, environment, wheel

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class BuiltImage:
    """An archive with its bill, the digest of its manifest, and its size packed and unpacked."""

    archive: Path
    bill: Path
    digest: str
    packed: int
    unpacked: int


def build(recipe: ContainerRecipe, output: Path) -> BuiltImage:
    """Return the image of this commit."""
    need({"apt-get": "apt", "dpkg-deb": "dpkg", "dpkg": "dpkg"}, "build a container image")
    output.mkdir(parents=True, exist_ok=True)
    facts = _facts()
    stem = f"{recipe.name}_{facts.version}_{facts.architecture}"
    with tempfile.TemporaryDirectory(prefix="paddock-image-") as made:
        folder = Path(made)
        root = folder / "root"
        _install(root, folder, recipe, facts)
        chosen = _debian(root, recipe)
        _compile(root)
        layers = _layers(root, folder, facts.created)
        archive = output / f"{stem}.oci.tar"
        digest = oci.archive(recipe, facts, layers, archive)
    listed = output / f"{stem}.cdx.json"
    listed.write_text(json.dumps(contents(recipe, facts, chosen), indent=2) + "\n", encoding="utf-8")
    return BuiltImage(archive, listed, digest, sum(each.size for each in layers), sum(each.content_size for each in layers))


def _facts() -> oci.ImageFacts:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    dirty = "-dirty" if bill.git("status", "--porcelain", "--untracked-files=no") else ""
    architecture = run(["dpkg", "--print-architecture"]).decode().strip()
    return oci.ImageFacts(version, bill.git("rev-parse", "HEAD") + dirty, wheel.commit_time(), architecture)


def _install(root: Path, folder: Path, recipe: ContainerRecipe, facts: oci.ImageFacts) -> None:
    built = wheel.build(folder / "wheel")
    environment.install(root, built, recipes.PYTHON, environment.PLATFORMS[facts.architecture], recipe.without)
    environment.interpreter(root, recipes.PYTHON)
    environment.programs(root, ("paddock",))


def _debian(root: Path, recipe: ContainerRecipe) -> Sequence[DebianPackage]:
    others = {str(path.relative_to(root)): path.read_bytes() for path in environment.site(root, recipes.PYTHON).rglob("*.so*")}
    # The C++ library is for google-re2; whether it is taken is a matter of need, as with every library.
    known = debian.candidates([*recipe.packages, "libstdc++6"], places.cache())
    chosen = debian.select(recipe.packages, known, others)
    for name, target in recipes.LINKS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)
    for name in recipes.FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for each in chosen:
        _write(root, each)
    for name, text in {**recipes.FILES, recipes.BUNDLE: debian.certificates(known["ca-certificates"]).decode()}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return chosen


def _write(root: Path, package: DebianPackage) -> None:
    for name, member in package.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if member.target:
            path.symlink_to(member.target)
        else:
            path.write_bytes(member.data)
            path.chmod(member.mode & 0o755)
    # Where scanners of images without dpkg look for Debian's packages.
    control = root / "var/lib/dpkg/status.d" / package.name
    control.parent.mkdir(parents=True, exist_ok=True)
    control.write_text(package.control)


def _compile(root: Path) -> None:
    """Write the bytecode, by the image's own interpreter: a read-only container cannot, and would compile at every start."""
    libraries = next((root / "usr/lib").glob("*-linux-gnu"))
    loader = next(libraries.glob("ld-linux-*.so.*"))
    python = [loader, "--library-path", libraries, root / f"usr/bin/python{recipes.PYTHON}", "-B", "-S", "-s"]
    folders = [root / f"usr/lib/python{recipes.PYTHON}", environment.site(root, recipes.PYTHON)]
    # Hashes in place of times, and the order of sets is the same in each run.
    words = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s", root, *folders]
    variables = {"PYTHONHOME": str(root / "usr"), "PYTHONHASHSEED": "0", "PYTHONPATH": ""}
    command = [str(word) for word in (*python, *words)]
    done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError("cannot compile the Python files of the image", why=(done.stderr or done.stdout)[-2000:])


def _layers(root: Path, folder: Path, time: int) -> Sequence[oci.Layer]:
    names: list[list[str]] = [[], [], []]
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        names[recipes.layer_of(name)].append(name)
    return [oci.layer(root, each, folder / f"layer-{number}", time) for number, each in enumerate(names)]


def contents(recipe: ContainerRecipe, facts: oci.ImageFacts, chosen: Sequence[DebianPackage]) -> Mapping[str, Any]:
    """Return the bill of materials: Paddock, the locked packages, Debian's packages."""
    own = f"pkg:pypi/paddock@{facts.version}"
    program = {"type": "application", "bom-ref": own, "name": "paddock", "version": facts.version, "purl": own, "scope": "required"}
    components = [program, *bill.locked(recipe.without), *(_component(each) for each in chosen)]
    purl = f"pkg:oci/{recipe.name}@{facts.version}?arch={facts.architecture}"
    subject = {"type": "container", "bom-ref": purl, "name": recipe.name, "purl": purl}
    return bill.bill(facts.version, subject, components)


def _component(package: DebianPackage) -> Mapping[str, Any]:
    architecture = package.field("Architecture")
    purl = f"pkg:deb/debian/{package.name}@{quote(package.version, safe='')}?arch={architecture}&distro=debian-12"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "purl": purl,
        "scope": "required",
        "hashes": [{"alg": "SHA-256", "content": package.package.sha256}],
    }
