"""Compares what two versions of the tree give to their users: ``make freeze BASE=<commit>``, or ``python -m tools.freeze BASE``.

A change of the house (a move, a rename, another design inside) leaves all of this as it is, byte for byte:

- the generated files: definitions, schemas, reference and man pages, charts with their rights;
- the help of every command, and `explain` of every kind;
- what `validate`, `render`, `convert` and `plan` say of every example;
- the objects that a new server starts with, roles and bindings among them;
- every text in the source but docstrings and names of modules: messages, reasons, fields.

Each version runs with its own package: `record` is called in a process of its own, with the folder of a version. The base is read from Git.
What differs is printed as a difference of lines, and the exit code is 1.
"""

import argparse
import ast
import difflib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What is compared, by name; a name is a path, a command or a part.
Frozen = Mapping[str, str]
_MODULE = re.compile(r"paddock(_drivers)?(\.\w+)*(:\w+)?\.?")
_LINES = 40


def record(root: Path) -> Iterator[tuple[str, str]]:
    """Yield all that stays, of the version in a folder whose package this process has loaded."""
    yield from _generated()
    yield from _help()
    yield from _of_examples(root)
    yield "objects of a new server", _first_objects()
    yield "texts of the source", "".join(f"{json.dumps(each)}\n" for each in sorted(texts(sorted((root / "src").rglob("*.py")))))


def _generated() -> Iterator[tuple[str, str]]:
    from tools.gen import TARGETS  # noqa: PLC0415 - of the version that is recorded

    for target in TARGETS:
        for name, text in target.produce().items():
            # The pictures show the modules; a change of the house changes them.
            if not target.folder.endswith("pictures"):
                yield f"{target.folder}/{name}", text


def _call(*words: str) -> str:
    """Return what a command prints, and its exit code."""
    from paddock.app.main import COMMANDS, GROUPS  # noqa: PLC0415 - of the version that is recorded
    from paddock.cli import main  # noqa: PLC0415
    from paddock.cli.console import Console  # noqa: PLC0415

    out, err = io.BytesIO(), io.BytesIO()
    code = main.run(list(words), Console(out, err), COMMANDS, GROUPS)
    return f"{out.getvalue().decode()}--- standard error\n{err.getvalue().decode()}--- exit code {code}\n"


def _help() -> Iterator[tuple[str, str]]:
    from paddock.app.main import COMMANDS  # noqa: PLC0415 - of the version that is recorded
    from paddock.cli import main  # noqa: PLC0415
    from paddock.cli.commandtree import walk  # noqa: PLC0415

    yield "help", _call("help")
    for entry in walk(main.every(COMMANDS)):
        yield f"help {' '.join(entry.words)}", _call(*entry.words, "--help")


def _of_examples(root: Path) -> Iterator[tuple[str, str]]:
    from paddock.kubernetes import catalog  # noqa: PLC0415 - of the version that is recorded

    for group, kind in catalog.known():
        name = f"{kind}.{group}" if group else kind
        yield f"explain {name}", _call("explain", name)
        yield f"explain --recursive {name}", _call("explain", "--recursive", name)
    examples = sorted(path.relative_to(root) for path in (root / "src").rglob("examples/*.yaml"))
    # `plan` changes the first example of a dialect into each other one: the more differs, the more of the table is met.
    first: dict[Path, Path] = {}
    for path in examples:
        for words in (("validate",), ("render",), *(("convert", "--to", each) for each in catalog.DIALECTS)):
            yield f"{' '.join(words)} {path}", _call(*words, "-f", str(path))
        old = first.setdefault(path.parent, path)
        for target in ("embedded", "cluster"):
            yield f"plan {target} {path}", _call("plan", "--target", target, "-f", str(path), "--against", str(old))


def _first_objects() -> str:
    from paddock.server.housekeeping import bootstrap  # noqa: PLC0415 - of the version that is recorded

    return "".join(json.dumps(each, indent=1, sort_keys=True, default=str) + "\n" for each in bootstrap.objects())


def texts(paths: Iterable[Path]) -> set[str]:
    """Return the texts of modules. A text with values in it has `{}` in their places."""
    found = set[str]()
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        left_out = {id(node) for each in ast.walk(tree) for node in _docstring(each)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
                left_out |= {id(part) for part in node.values}
                found.add("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
                found.add(node.value)
    return {each for each in found if not _MODULE.fullmatch(each)}


def _docstring(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the text below a definition that says what it is."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
        match node.body[0]:
            case ast.Expr(value=ast.Constant() as text):
                yield text


def differences(base: Frozen, current: Frozen) -> Iterator[str]:
    """Yield lines that say what differs, the first of each part."""
    for name in sorted(base.keys() | current.keys()):
        if base.get(name) == current.get(name):
            continue
        old, new = base.get(name, "").splitlines(), current.get(name, "").splitlines()
        lines = list(difflib.unified_diff(old, new, f"base: {name}", f"tree: {name}", lineterm="", n=0))
        yield from lines[:_LINES]
        if len(lines) > _LINES:
            yield f"... and {len(lines) - _LINES} lines more"


def frozen(root: Path) -> Frozen:
    """Record the version in a folder, in a process of its own."""
    start = (
        f"import runpy, sys; sys.path[:0] = [{str(root / 'src')!r}, {str(root)!r}]; runpy.run_path({__file__!r})['write']({str(root)!r})"
    )
    ran = subprocess.run([sys.executable, "-c", start], cwd=root, capture_output=True, check=False)
    if ran.returncode:
        raise SystemExit(f"freeze: the version in {root} cannot be recorded:\n{ran.stderr.decode()}")
    found: dict[str, str] = json.loads(ran.stdout)
    return found


def write(root: str) -> None:
    """Print the record of a version: what `frozen` reads."""
    sys.stdout.write(json.dumps(dict(record(Path(root)))))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the tree with a commit, or with another tree."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.freeze", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", metavar="BASE", help="commit, or folder of another tree")
    base: str = parser.parse_args(arguments).base
    with tempfile.TemporaryDirectory(prefix="freeze-") as folder:
        if (place := Path(base)).is_dir():
            old = frozen(place.resolve())
        else:
            archive = subprocess.run(["git", "archive", base], cwd=ROOT, capture_output=True, check=True).stdout
            with tarfile.open(fileobj=io.BytesIO(archive)) as members:
                members.extractall(folder, filter="data")
            old = frozen(Path(folder))
    found = list(differences(old, frozen(ROOT)))
    print("\n".join(found) or f"freeze: {len(old)} parts are as in {base}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
