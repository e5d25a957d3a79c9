"""`paddock render`: prints the KubeVirt, CDI and core objects that manifests become."""

from collections.abc import Sequence

from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD, LOSSES, UNUSABLE
from paddock.cli.output import print_objects
from paddock.fleet.documents.inputobjects import gather
from paddock.fleet.documents.objects import InputReader
from paddock.fleet.documents.rendering import RenderSummary, render
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.schema.kind import AdmissionSettings

_TEXT = """Print the KubeVirt, CDI and core objects that manifests become, ready for `kubectl apply`. Values that a cluster
cannot express are reported on standard error. Prints nothing when an object has errors."""
_EXITS = {0: "rendered", 1: "an object has errors", 2: "wrong usage or unreadable input", 3: "--strict was given and something was lost"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("render", _TEXT, "[OPTIONS] -f FILE...", _EXITS)
    arguments.add_files(options)
    arguments.add_format(options, "yaml")
    text = "Form of the objects; seed follows the dialect's own documented output where Paddock departs from it (default: kubevirt)"
    arguments.add_choice(options, ("--target",), ("kubevirt", "seed"), text, "kubevirt")
    options.add_argument("--strict", action="store_true", help="Exit with 3 when the translation loses something")
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    reader = InputReader(console, AdmissionSettings())
    gathered = gather(reader, arguments.files(options, parsed), console)
    if reader.unusable:
        return UNUSABLE
    if gathered.refused:
        return FINDINGS
    outcome = RenderSummary(console)
    made = render(gathered, Rendering(literal=parsed.target == "seed"), outcome)
    if outcome.failures:
        return FINDINGS
    print_objects(console, [each.data for each in made], parsed.output)
    return LOSSES if parsed.strict and outcome.losses else GOOD
