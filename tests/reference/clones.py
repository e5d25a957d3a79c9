"""Programs and files of repositories that no package registry serves, from clones that a developer has.

Nothing of them is in this repository. PADDOCK_PUBLISHED names a directory with the clones as OWNER/NAME, with or without a work tree:

    git clone --bare https://github.com/vitistack/kubevirt-operator $PADDOCK_PUBLISHED/vitistack/kubevirt-operator

A `Clone` is one commit of a repository, so a clone that has moved on still gives the same files. A `CloneRecipe` builds programs of it,
unmodified, with the versions of its own `go.mod`. What was built lies in the cache like every other program, and is found there without
the clone.
"""

import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from paddock.base.errors import Terminal
from tests.reference import build

CLONES = "PADDOCK_PUBLISHED"


class NoClone(Terminal):
    """The clone of a repository is not there, or lacks its commit."""


@dataclass(frozen=True)
class Clone:
    """A commit of a repository on GitHub."""

    repository: str
    commit: str
    # the path of its Go module
    module: str = ""
    # the folder of the module: a repository may hold another's, for builds without a network
    folder: str = ""

    def show(self, path: str) -> bytes:
        """Return the content of a file. Raises `NoClone`."""
        return self._git("show", f"{self.commit}:{path}")

    def unpack(self, folder: Path, paths: Sequence[str] = ()) -> None:
        """Write its files into a folder: all of them, or those of some paths. Raises `NoClone`."""
        folder.mkdir(parents=True)
        for path in paths or ("",):
            if self._git("cat-file", "-t", f"{self.commit}:{path}").strip() == b"tree":
                prefix = [f"--prefix={path}/"] if path else []
                subprocess.run(["tar", "-x", "-C", folder], input=self._git("archive", *prefix, f"{self.commit}:{path}"), check=True)
            else:
                (folder / path).write_bytes(self.show(path))

    def _git(self, *arguments: str) -> bytes:
        """Return what git answers about it."""
        problem = f"cannot read github.com/{self.repository}"
        clone = Path(os.environ.get(CLONES, "")) / self.repository
        if not os.environ.get(CLONES) or not clone.exists():
            fix = f"git clone --bare https://github.com/{self.repository} DIRECTORY/{self.repository}, and set {CLONES}=DIRECTORY"
            raise NoClone(problem, why=f"{CLONES} names no directory with a clone of it", fix=fix)
        ran = subprocess.run(["git", "-C", str(clone), *arguments], capture_output=True)
        if ran.returncode:
            raise NoClone(problem, why=ran.stderr.decode().strip(), fix=f"git -C {clone} fetch")
        return ran.stdout


@dataclass(frozen=True)
class CloneRecipe:
    """Programs that are built together in the tree of a clone."""

    name: str
    clone: Clone
    programs: tuple[build.Program, ...]
    # clones that stand in for modules which the first one requires
    beside: tuple[Clone, ...] = ()
    # links C libraries of this machine, or of where the builder says that they lie
    cgo: bool = False
    # what is read of the tree, for a clone that lacks large files of the rest; empty: all
    paths: tuple[str, ...] = ()
    # files of the tree that are kept beside the programs
    files: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """A name for everything that decides what a build produces."""
        facts = (self, sorted(build.ENVIRONMENT.items()), build.BUILD, platform.system(), platform.machine())
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:20]


def built(
    recipe: CloneRecipe,
    say: Callable[[str], None] = print,
    *,
    linking: Mapping[str, str] | None = None,
    cache: Path | None = None,
) -> Path:
    """Return the directory with the programs of a recipe, built if they are not there yet. Raises `NoClone`.

    `linking` has the variables that lead to C libraries which are not this machine's own.
    """
    return build.stored(recipe.name, recipe.key, partial(_build_all, recipe, linking or {}, say), say, cache=cache)


def _build_all(recipe: CloneRecipe, linking: Mapping[str, str], say: Callable[[str], None], target: Path) -> None:
    sources = target / "sources"
    tree = sources / recipe.clone.repository
    recipe.clone.unpack(tree, recipe.paths)
    build.need_go(tree)
    options: tuple[str, ...] = ()
    if recipe.beside:
        options = (f"-modfile={_replacing(recipe, tree, sources)}",)
    for program in recipe.programs:
        say(f"building {program.name} from {program.package} of {recipe.clone.repository} (minutes the first time, once per commit)")
        command = ["nice", *build.BUILD, *options, "-ldflags", "-s -w", "-o", str(target / program.name), program.package]
        build.run(program, command, tree, {**_environment(recipe, tree), **linking})
    for path in recipe.files:
        shutil.copy2(tree / path, target)
    shutil.rmtree(sources)


def _environment(recipe: CloneRecipe, tree: Path) -> Mapping[str, str]:
    """Return the variables of a build; a tree with a workspace has its versions from there."""
    return {**build.ENVIRONMENT, "GOWORK": "" if (tree / "go.work").exists() else "off", "CGO_ENABLED": "1" if recipe.cgo else "0"}


def _replacing(recipe: CloneRecipe, tree: Path, sources: Path) -> Path:
    """Unpack the clones beside it, and return a copy of its mod file that finds them."""
    replaced = sources / "go.mod"
    lines = [(tree / "go.mod").read_text()]
    for clone in recipe.beside:
        unpacked = sources / "beside" / clone.module
        clone.unpack(unpacked, [clone.folder] if clone.folder else ())
        module = unpacked / clone.folder
        if not (module / "go.mod").exists():
            # Go leaves it out of the modules that it copies into a repository.
            (module / "go.mod").write_text(f"module {clone.module}\n\ngo {build.version_of(tree, 'go')}\n")
        lines.append(f"replace {clone.module} => {module}\n")
    replaced.write_text("\n".join(lines))
    shutil.copyfile(tree / "go.sum", replaced.with_suffix(".sum"))
    return replaced
