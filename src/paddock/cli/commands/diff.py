"""`paddock diff`: compares two sets of manifests by meaning."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from paddock.base.lines import one_line
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD, UNUSABLE
from paddock.fleet.documents import report
from paddock.fleet.documents.comparison import ObjectPair, pair, place
from paddock.fleet.documents.inputobjects import gather
from paddock.fleet.documents.objects import InputReader
from paddock.fleet.documents.rendering import RenderSummary
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.plan.changes.differences import ABSENT, FieldDifference, format_named

_TEXT = """Compare two sets of manifests by meaning: quantities by value, defaults filled in, list entries by name, and machines
of different dialects as the KubeVirt objects they become."""
_EXITS = {0: "no differences", 1: "differences, or an object has errors", 2: "wrong usage or unreadable input"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("diff", _TEXT, "[OPTIONS] OLD NEW", _EXITS)
    text = "File, directory or - for standard input; give it twice, the old one first (-f is optional)"
    options.add_argument("-f", "--filename", dest="files", metavar="FILE", action="append", default=[], help=text)
    options.add_argument("more_files", metavar="FILE", nargs="*", help=argparse.SUPPRESS)
    arguments.add_format(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    named = [*parsed.files, *parsed.more_files]
    if len(named) != 2:
        options.error("name two inputs: paddock diff OLD NEW")
    reader = InputReader(console, AdmissionSettings())
    old, new = (gather(reader, [name], console) for name in named)
    if reader.unusable:
        return UNUSABLE
    if old.refused or new.refused:
        return FINDINGS
    outcome = RenderSummary(console)
    pairs = pair(old, new, outcome)
    if outcome.failures:
        return FINDINGS
    return _print(pairs, parsed.output, console)


def _print(pairs: Sequence[ObjectPair], output: str, console: Console) -> int:
    if output == "text":
        lines = [line for each in pairs for line in _lines(each)]
        console.out("".join(f"{line}\n" for line in lines))
        return FINDINGS if lines else GOOD
    data = [entry for each in pairs for entry in _as_data(each)]
    console.out(report.structured({"differences": data}, output))
    return FINDINGS if data else GOOD


def _lines(pair: ObjectPair) -> Iterator[str]:
    one_sided = pair.new if pair.old is None else pair.old if pair.new is None else None
    if one_sided is not None:
        start = one_sided.document.start
        how = "added" if pair.old is None else "removed"
        yield one_line(f"{one_sided.document.source}:{start.line}:{start.column}: {one_sided.title}: {how}")
    for each in pair.differences():
        found = place(pair, each)
        at = f"{found.source}:{found.position.line}:{found.position.column}"
        yield one_line(f"{at}: {found.title}: {found.finding.message}")


def _word(difference: FieldDifference) -> str:
    return {"up": "changed", "down": "changed"}.get(str(difference.how), str(difference.how))


def _as_data(pair: ObjectPair) -> Iterator[dict[str, Any]]:
    side = pair.side
    if pair.old is None or pair.new is None:
        yield {"object": side.title, "change": "added" if pair.old is None else "removed"}
    for each in pair.differences():
        found = place(pair, each)
        entry = {"object": side.title, "change": _word(each), "field": format_named(each.named)}
        values = {"before": each.before, "after": each.after}
        entry.update({name: value for name, value in values.items() if value is not ABSENT})
        yield {**entry, "file": found.source, "line": found.position.line, "column": found.position.column}
