"""`paddock validate`: reports every finding of every object with its position, without network or server."""

from collections.abc import Sequence

from paddock.cli import arguments, targets
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD, UNUSABLE
from paddock.fleet.documents import report
from paddock.fleet.documents.inventory import Inventory
from paddock.fleet.documents.objects import InputReader, LocatedFinding
from paddock.kubernetes.schema.finding import Severity

_TEXT = """Check manifests: fields, values, rules across fields, and references between the objects of the input. Each finding
names its file, line and column. Warnings and notes do not change the exit code unless --strict is given."""
_EXITS = {0: "no errors", 1: "errors (with --strict: or warnings)", 2: "wrong usage or unreadable input"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("validate", _TEXT, "[OPTIONS] -f FILE...", _EXITS)
    arguments.add_files(options)
    arguments.add_format(options)
    targets.add_target(options)
    options.add_argument("--strict", action="store_true", help="Treat warnings as errors")
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    settings = targets.settings(parsed, console)
    reader = InputReader(console, settings)
    inventory = Inventory(settings)
    tally = report.FindingTally()
    for subject in reader.subjects(arguments.files(options, parsed)):
        tally.objects += 1
        inventory.add(subject)
    found = list(inventory.findings())
    tally.add(found)
    # After an input that cannot be read, "nothing found" would look like an all-clear.
    if tally.objects or not reader.unusable:
        _print(found, tally, parsed.output, console)
    if reader.unusable:
        return UNUSABLE
    return FINDINGS if tally[Severity.ERROR] or (parsed.strict and tally[Severity.WARNING]) else GOOD


def _print(located_findings: Sequence[LocatedFinding], tally: report.FindingTally, output: str, console: Console) -> None:
    if output == "text":
        console.out("".join(report.line(each) + "\n" for each in located_findings))
        console.say(tally.summary())
    else:
        console.out(report.structured({**tally.as_data(), "findings": [report.as_data(each) for each in located_findings]}, output))
