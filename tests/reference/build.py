"""Builds the programs the reference tests need, from the Go module proxy: kube-apiserver, kubectl and etcd, and whatever else
has a `Recipe`.

The `.mod` and `.sum` file of a recipe fix every version; what else decides the result stands in the recipe itself. Everything
together makes a key, and a finished build lies under that key in the cache, outside the repository. So a changed version is built
anew, an unchanged one is found without Go, and a directory with a key's name is always complete: it is renamed into place
at the end. A lock per key makes parallel runs wait for one build. `python -m tests.reference.build` builds and prints where.
"""

import argparse
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from paddock.base.errors import Terminal
from tests.reference import altered

MODULE = Path(__file__).parent / "oracle"

# Kubernetes is asked for its version by clients and by its own feature gates, and learns it from the linker only.
VERSION_VARIABLES = ("k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion")


@dataclass(frozen=True)
class Program:
    """One program and the package it is built from."""

    name: str
    package: str


# etcd and kubectl come first: they are small, and a missing compiler or proxy shows in seconds.
PROGRAMS = (
    Program("etcd", "go.etcd.io/etcd/server/v3"),
    Program("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
)
BUILD = ("go", "build", "-trimpath", "-buildvcs=false")
# The user's settings for fetching modules stay as they are; what would change the result does not.
ENVIRONMENT: Mapping[str, str] = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}


@dataclass(frozen=True)
class Protocol:
    """A file of protobuf whose Go code stands in for a package that the proxy lacks."""

    file: Path
    # the path of the package, and its folder in the module of the recipe
    package: str
    folder: str
    # builds the generator and its plugins
    generator: "Recipe"


@dataclass(frozen=True)
class Recipe:
    """Programs that are built together, and what decides how."""

    name: str
    module: Path
    programs: tuple[Program, ...]
    # the module whose version the programs call their own, and the variables that tell them
    release: str
    variables: tuple[str, ...] = VERSION_VARIABLES
    modfile: str = "go.mod"
    command: tuple[str, ...] = BUILD
    # modules of ours beside this one that stand in for what the proxy lacks
    stand_ins: Path | None = None
    # links C libraries of this machine
    cgo: bool = False
    protocol: Protocol | None = None
    # its folder says what of other modules is altered (`altered.py`)
    alters: bool = False

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of a build."""
        return {**ENVIRONMENT, "CGO_ENABLED": "1"} if self.cgo else ENVIRONMENT

    @property
    def version(self) -> str:
        """The version of the programs; what Kubernetes 1.x publishes apart is called v0.x."""
        version = version_of(self.module, self.release, self.modfile)
        return version.replace("v0.", "v1.", 1) if self.release.startswith("k8s.io/") else version

    @property
    def key(self) -> str:
        """A name for everything that decides what a build produces."""
        digest = hashlib.sha256()
        versions = self.module / self.modfile
        folders = [self.module, *([self.stand_ins] if self.stand_ins else ())]
        for path in (versions, versions.with_suffix(".sum"), *(file for each in folders for file in sorted(each.rglob("*.go")))):
            digest.update(path.read_bytes())
        if self.alters:
            digest.update(b"".join(path.read_bytes() for path in altered.inputs(self.module)))
        if self.protocol is not None:
            digest.update(self.protocol.file.read_bytes() + self.protocol.generator.key.encode())
        facts = (self.command, self.programs, self.variables, sorted(self.environment.items()), platform.system(), platform.machine())
        digest.update(repr(facts).encode())
        return digest.hexdigest()[:20]


ORACLE = Recipe("oracle", MODULE, PROGRAMS, "k8s.io/kubernetes")


@dataclass(frozen=True)
class Binaries:
    """The built programs, and their Kubernetes version."""

    etcd: Path
    kubectl: Path
    kube_apiserver: Path
    version: str


class GoMissing(Terminal):
    """There is no Go toolchain, and no earlier build in the cache."""

    def __init__(self, wanted: str) -> None:
        super().__init__(
            "cannot build the reference programs",
            why="there is no `go` on PATH",
            fix=f"install Go {wanted} or newer, or run without the reference tests",
        )


class BuildFailed(Terminal):
    """Go was there and could not build a program; `output` is what it said."""

    def __init__(self, program: str, output: str) -> None:
        super().__init__(
            f"cannot build {program}",
            why="`go build` failed with:\n" + "\n".join(output.splitlines()[-30:]),
            fix="check that the Go module proxy can be reached, that the disk has 4 GB free and that go.sum is current",
        )
        self.program = program
        self.output = output


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """Paddock's cache directory: $PADDOCK_CACHE, or `paddock` in the user's cache."""
    if own := environ.get("PADDOCK_CACHE"):
        return Path(own)
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paddock"


def recipe_key(module: Path = MODULE) -> str:
    """The key of the real server."""
    return replace(ORACLE, module=module).key


def version_of(module: Path, path: str, modfile: str = "go.mod") -> str:
    """The version that a module requires of another; with the path `go`, the language version."""
    text = (module / modfile).read_text()
    found = re.search(rf"^\s*(?:require )?{re.escape(path)} (v?\d\S*)", text, re.MULTILINE)
    if not found:
        raise Terminal(f"cannot read {module / modfile}", why=f"it requires no {path}", fix="restore the committed file")
    return found[1]


def ensure(say: Callable[[str], None] = print, *, cache: Path | None = None, module: Path = MODULE) -> Binaries:
    """The programs of the real server, building them first if this recipe has not been built yet."""
    recipe = replace(ORACLE, module=module)
    done = built(recipe, say, cache=cache)
    return Binaries(etcd=done / "etcd", kubectl=done / "kubectl", kube_apiserver=done / "kube-apiserver", version=recipe.version)


class Buildable(typing.Protocol):
    """Programs that are built together, of modules or of a clone."""

    @property
    def name(self) -> str:
        """The folder of the cache."""
        ...

    @property
    def key(self) -> str:
        """The folder below it."""
        ...

    @property
    def programs(self) -> tuple[Program, ...]:
        """What is built."""
        ...


def missing(recipes: Iterable[Buildable], cache: Path | None = None) -> list[str]:
    """Return the programs that are not built yet."""
    home = cache or cache_root()
    return [program.name for recipe in recipes if not (home / recipe.name / recipe.key).is_dir() for program in recipe.programs]


def built(recipe: Recipe, say: Callable[[str], None] = print, *, cache: Path | None = None) -> Path:
    """The directory with the programs of a recipe, building them first if it has not been built yet."""
    return stored(recipe.name, recipe.key, partial(_build_all, recipe, say), say, cache=cache)


def stored(name: str, key: str, make: Callable[[Path], None], say: Callable[[str], None], *, cache: Path | None = None) -> Path:
    """The directory of a key in the cache, which `make` fills first if it is not there yet."""
    home = (cache or cache_root()) / name
    done = home / key
    if not done.is_dir():
        home.mkdir(parents=True, exist_ok=True)
        with locked(home / f"{key}.lock", say):
            if not done.is_dir():
                # The lock is ours, so what stands under this name is left from a build that was killed.
                unfinished = home / f"{key}.partial"
                shutil.rmtree(unfinished, ignore_errors=True)
                unfinished.mkdir()
                make(unfinished)
                unfinished.rename(done)
                say(f"built the reference programs in {done}")
    return done


@contextmanager
def locked(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Holds a lock that the kernel lets go of when this process ends, however it ends."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another build of the reference programs (lock {path})")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_all(recipe: Recipe, say: Callable[[str], None], target: Path) -> None:
    need_go(recipe.module, recipe.modfile)
    modfile: Path | str = recipe.modfile
    if recipe.alters:
        modfile = altered.lay(recipe.module, recipe.modfile, target / "modules", recipe.environment)
    options: tuple[str, ...] = (f"-modfile={modfile}",)
    if recipe.protocol is not None:
        options += _overlay(recipe, recipe.protocol, target, say)
    linker = " ".join(["-s", "-w", *(f"-X {variable}={recipe.version}" for variable in recipe.variables)])
    for program in recipe.programs:
        say(f"building {program.name} {recipe.version} from {program.package} (minutes the first time, once per version)")
        # nice: a build of minutes on all cores must not be felt by whoever works on the machine.
        command = ["nice", *recipe.command, *options, "-ldflags", linker, "-o", str(target / program.name), program.package]
        run(program, command, recipe.module, recipe.environment)


def need_go(module: Path, modfile: str = "go.mod") -> None:
    """Raise `GoMissing` with the version that a module wants."""
    if shutil.which("go") is None:
        raise GoMissing(version_of(module, "go", modfile))


def _overlay(recipe: Recipe, protocol: Protocol, target: Path, say: Callable[[str], None]) -> tuple[str, ...]:
    """The options that lay the generated package over its empty folder."""
    generator, made = built(protocol.generator, say), target / "protocol"
    made.mkdir()
    name, *plugins = (str(generator / program.name) for program in protocol.generator.programs)
    subprocess.run([name, "generate", protocol.file, made, protocol.package, *plugins], check=True)
    places = {str(recipe.module / protocol.folder / file.name): str(file) for file in made.iterdir()}
    overlay = target / "overlay.json"
    overlay.write_text(json.dumps({"Replace": places}))
    return ("-overlay", str(overlay))


def run(program: Program, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Run the command that builds a program. Raises `BuildFailed`."""
    ran = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if ran.returncode:
        raise BuildFailed(program.name, ran.stdout)


def main() -> int:
    """Builds what is missing of the real server and prints the directory with the programs, and nothing else, on standard output."""
    argparse.ArgumentParser(prog="python -m tests.reference.build", description=main.__doc__).parse_args()
    try:
        binaries = ensure(say=lambda text: print(text, file=sys.stderr, flush=True))
    except Terminal as problem:
        print(problem, file=sys.stderr)
        return 1
    print(binaries.etcd.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
