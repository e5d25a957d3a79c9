"""`paddock convert`: translates manifests from one dialect to another and reports what does not fit."""

from collections.abc import Sequence

from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD, LOSSES, UNUSABLE
from paddock.cli.output import print_objects
from paddock.dialects import translators as catalog
from paddock.fleet.documents.conversion import FORMS, WITH_FORMS, convert
from paddock.fleet.documents.inputobjects import gather
from paddock.fleet.documents.objects import InputReader
from paddock.fleet.documents.rendering import RenderSummary
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.schema.kind import AdmissionSettings

_TEXT = """Print manifests in another dialect. Values that the other dialect cannot express are reported on standard error: the
field, its value, the reason, and what happens instead. Prints nothing when an object has errors."""
_EXITS = {0: "converted", 1: "an object has errors", 2: "wrong usage or unreadable input", 3: "--strict was given and something was lost"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("convert", _TEXT, "[OPTIONS] --to DIALECT -f FILE...", _EXITS)
    arguments.add_files(options)
    arguments.add_format(options, "yaml")
    arguments.add_choice(options, ("--to",), (catalog.HUB, *catalog.DIALECTS), "Dialect to write", arguments.REQUIRED)
    arguments.add_choice(options, ("--form",), FORMS, "Form of Vitistack's Machines: the document's, or Vitistack's own")
    options.add_argument("--strict", action="store_true", help="Exit with 3 when the translation loses something")
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    if parsed.form and parsed.to != WITH_FORMS:
        options.error(f"--form is about Vitistack's Machines: write --to {WITH_FORMS}, or leave it out")
    reader = InputReader(console, AdmissionSettings())
    gathered = gather(reader, arguments.files(options, parsed), console)
    if reader.unusable:
        return UNUSABLE
    if gathered.refused:
        return FINDINGS
    outcome = RenderSummary(console)
    made = convert(gathered, parsed.to, Rendering(), outcome, form=parsed.form or "")
    if outcome.failures:
        return FINDINGS
    print_objects(console, made, parsed.output)
    return LOSSES if parsed.strict and outcome.losses else GOOD
