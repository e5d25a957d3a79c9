"""`paddock schema`: prints the JSON Schema of a kind, or writes those of all kinds to a directory, for editors."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.kinds import KindNotFound, resolve
from paddock.kubernetes import catalog
from paddock.kubernetes.schema.generate import files, jsonschema

_TEXT = """Print the JSON Schema (draft 2020-12) of a kind, or write the schemas of all kinds to a directory. Editors complete and
check manifests with them. The schemas come from this installation; DIR/paddock.json covers all kinds."""
_EXITS = {0: "success", 2: "wrong usage, no such kind, or a directory that cannot be written"}


def parser() -> Parser:
    options = arguments.parser("schema", _TEXT, "[OPTIONS] (KIND | --out DIR)", _EXITS)
    options.add_argument("kind", metavar="KIND", nargs="?", help="Kind to print the schema of, such as vm or machines.vitistack.io")
    arguments.add_choice(options, ("--dialect",), ("core", *catalog.DIALECTS), "Dialect of the kind, or of the kinds to write")
    options.add_argument("--out", type=Path, metavar="DIR", help="Directory to write all schemas to; it is created when it is missing")
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    if (parsed.kind is None) == (parsed.out is None):
        options.error("name a kind to print, or a directory for the schemas of all kinds: --out DIR")
    if parsed.out is not None:
        _write(parsed, console)
    else:
        _print(parsed, console)
    return GOOD


def _print(parsed: argparse.Namespace, console: Console) -> None:
    asked = resolve(parsed.kind, parsed.dialect)
    if asked.path:
        fix = f"`paddock explain {parsed.kind}` describes the field"
        raise KindNotFound(f"a schema is that of a whole kind, and {parsed.kind} names a field of {asked.kind.kind}", fix=fix)
    if asked.others:
        others = ", ".join(f"{kind.plural}.{kind.group}" for kind in asked.others)
        console.say(f"paddock: this is KubeVirt's {asked.kind.kind}; other kinds of that name: {others}")
    console.out(json.dumps(jsonschema.document(asked.kind), indent=1, ensure_ascii=False) + "\n")


def _write(parsed: argparse.Namespace, console: Console) -> None:
    target: Path = parsed.out
    kinds = [kind for kind in catalog.every() if parsed.dialect in (None, kind.dialect)]
    texts = files.json_schemas(kinds)
    try:
        for name, text in texts.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_text(text)
    except OSError as error:
        raise Terminal(
            f"cannot write {error.filename or target}", why=error.strerror or str(error), fix="name another directory"
        ) from error
    console.say(f"paddock: wrote {len(texts)} schemas; paddock.json covers all kinds and selects by apiVersion and kind")
    console.out(f"{target / 'paddock.json'}\n")
