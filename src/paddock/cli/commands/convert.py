"""`paddock convert`: manifests of one dialect as manifests of another; what does not fit is told."""

from collections.abc import Sequence

from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.conversion import convert
from paddock.cli.exits import FINDINGS, GOOD, LOSSES, UNUSABLE
from paddock.cli.inputobjects import gather
from paddock.cli.objects import InputReader
from paddock.cli.output import print_objects
from paddock.cli.rendering import RenderSummary
from paddock.meta.rendering import Rendering
from paddock.schema.kind import AdmissionSettings
from paddock.translate import catalog

_TEXT = """Print manifests in another dialect. Every value that the other dialect cannot say is reported on standard error:
the field, its value, why, and what happens instead. Nothing is printed when an object has errors."""


def run(given: Sequence[str], console: Console) -> int:
    """The command."""
    options = arguments.parser("convert", _TEXT)
    arguments.add_files(options)
    arguments.add_format(options, "yaml")
    arguments.add_choice(options, ("--to",), (catalog.HUB, *catalog.DIALECTS), "the dialect to write", arguments.REQUIRED)
    options.add_argument("--strict", action="store_true", help="fail when something is lost")
    parsed = options.parse_args(given)
    reader = InputReader(console, AdmissionSettings())
    gathered = gather(reader, arguments.files(options, parsed), console)
    if reader.unusable:
        return UNUSABLE
    if gathered.refused:
        return FINDINGS
    outcome = RenderSummary(console)
    made = convert(gathered, parsed.to, Rendering(), outcome)
    if outcome.failures:
        return FINDINGS
    print_objects(console, made, parsed.output)
    return LOSSES if parsed.strict and outcome.losses else GOOD
