"""`paddock examples`: prints the commented example manifests that lie beside the declarations."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.output import print_objects
from paddock.fleet.documents.objects import InputReader
from paddock.kubernetes import catalog
from paddock.kubernetes.schema.kind import AdmissionSettings

_TEXT = "Print example manifests with comments, as one YAML stream. With -o json, print the objects alone."
_EXITS = {0: "success", 2: "wrong usage"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("examples", _TEXT, exits=_EXITS)
    arguments.add_choice(options, ("--dialect",), catalog.DIALECTS, "Print only the examples of this dialect")
    options.add_argument("--list", action="store_true", help="Print only the paths of the files")
    arguments.add_format(options, "yaml")
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    files = list(_files(parsed.dialect))
    if parsed.list:
        console.out("".join(f"{file}\n" for file in files))
    elif parsed.output == "yaml":
        console.out("---\n".join(f"# {_name(file)}\n{_body(file)}" for file in files))
    else:
        subjects = InputReader(console, AdmissionSettings()).subjects([str(file) for file in files])
        print_objects(console, [subject.data for subject in subjects], parsed.output)
    return GOOD


def _files(dialect: str | None) -> Iterator[Path]:
    for each in catalog.DIALECTS if dialect is None else (dialect,):
        folder = catalog.folder(each) / "examples"
        if folder.is_dir():
            yield from sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml", ".json"))


def _name(file: Path) -> str:
    return f"{file.parts[-3]}{os.sep}{file.name}"


def _body(file: Path) -> str:
    text = file.read_text(encoding="utf-8").rstrip("\n") + "\n"
    return text.removeprefix("---\n")
