"""Alterations of modules: a build takes copies of them in which a few lines are replaced and files are added.

Go lets nothing be laid over the module cache, so the copies lie in the folder of the build, and a copy of the recipe's mod file replaces
the modules by them. A folder of a recipe says what is altered: `alterations.toml` each line with its reason, and `added/MODULE/` the files.
"""

import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paddock.base.errors import Terminal


@dataclass(frozen=True)
class Alteration:
    """Lines of a file of a module, what stands there in their place, and why."""

    module: str
    file: str
    why: str
    anchor: str
    replacement: str


@dataclass(frozen=True)
class Addition:
    """A file that a module has in addition."""

    module: str
    file: str
    source: Path


class AnchorMissing(Terminal):
    """The lines to alter do not stand, or stand more than once, where they are expected."""

    def __init__(self, alteration: Alteration, times: int) -> None:
        place = f"{alteration.module}/{alteration.file}"
        super().__init__(
            f"cannot alter {place}",
            why=f"the lines {alteration.anchor.strip()!r} stand there {times} times",
            fix="adapt the alteration to this release of the module",
        )


def alterations(folder: Path) -> tuple[Alteration, ...]:
    """The alterations of a recipe, in their order."""
    text = (folder / "alterations.toml").read_text()
    return tuple(Alteration(**entry) for entry in tomllib.loads(text)["alteration"])


def additions(folder: Path) -> tuple[Addition, ...]:
    """The files that a recipe adds to the modules it alters."""
    modules = {alteration.module for alteration in alterations(folder)}
    return tuple(
        Addition(module, str(source.relative_to(folder / "added" / module)), source)
        for module in sorted(modules)
        for source in sorted((folder / "added" / module).rglob("*.go"))
    )


def inputs(folder: Path) -> tuple[Path, ...]:
    """The files that decide what is altered."""
    return (folder / "alterations.toml", *(addition.source for addition in additions(folder)))


def lay(folder: Path, modfile: str, target: Path, environment: Mapping[str, str]) -> Path:
    """Copy the modules with their alterations into `target`, and return a mod file that replaces them."""
    wanted = sorted({alteration.module for alteration in alterations(folder)})
    copies = {module: target / module for module in wanted}
    for module, source in _sources(folder, modfile, wanted, environment).items():
        # The module cache is read-only, and so would the copy be.
        shutil.copytree(source, copies[module], copy_function=shutil.copyfile)
        subprocess.run(["chmod", "-R", "u+w", copies[module]], check=True)
    for alteration in alterations(folder):
        _alter(copies[alteration.module] / alteration.file, alteration)
    for addition in additions(folder):
        shutil.copyfile(addition.source, copies[addition.module] / addition.file)
    replaced = target / "go.mod"
    replacements = "".join(f"replace {module} => {copy}\n" for module, copy in copies.items())
    replaced.write_text(f"{_absolute(folder, (folder / modfile).read_text())}\n{replacements}")
    shutil.copyfile((folder / modfile).with_suffix(".sum"), replaced.with_suffix(".sum"))
    return replaced


def _alter(path: Path, alteration: Alteration) -> None:
    text = path.read_text()
    if (times := text.count(alteration.anchor)) != 1:
        raise AnchorMissing(alteration, times)
    path.write_text(text.replace(alteration.anchor, alteration.replacement))


def _absolute(folder: Path, text: str) -> str:
    """The mod file, whose folders of ours are found from anywhere."""
    return "\n".join(
        f"{line[: line.index('=> ')]}=> {(folder / line.split('=> ')[1]).resolve()}" if "=> ../" in line else line
        for line in text.splitlines()
    )


def _sources(folder: Path, modfile: str, modules: list[str], environment: Mapping[str, str]) -> dict[str, Path]:
    command = ["go", "mod", "download", f"-modfile={modfile}", "-json", *modules]
    told = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)
    if told.returncode:
        raise Terminal(
            f"cannot fetch {', '.join(modules)}", why=told.stdout + told.stderr, fix="check that the Go module proxy can be reached"
        )
    decoder, text, found = json.JSONDecoder(), told.stdout.strip(), {}
    while text:
        entry, end = decoder.raw_decode(text)
        found[entry["Path"]] = Path(entry["Dir"])
        text = text[end:].strip()
    return found
