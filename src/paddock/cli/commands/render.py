"""`paddock render`: the KubeVirt, CDI and core objects that the objects of the input become, ready for `kubectl apply`."""

from collections.abc import Sequence

from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD, LOSSES, UNUSABLE
from paddock.cli.inputobjects import gather
from paddock.cli.objects import InputReader
from paddock.cli.output import print_objects
from paddock.cli.rendering import RenderSummary, render
from paddock.meta.rendering import Rendering
from paddock.schema.kind import AdmissionSettings

_TEXT = """Print the objects that manifests become on a KubeVirt cluster. Nothing is printed when an object has errors.
What a cluster cannot be told is reported on standard error."""


def run(given: Sequence[str], console: Console) -> int:
    """The command."""
    options = arguments.parser("render", _TEXT)
    arguments.add_files(options)
    arguments.add_format(options, "yaml")
    text = "seed: the dialect's own documented output where ours departs from it (default: kubevirt)"
    arguments.add_choice(options, ("--target",), ("kubevirt", "seed"), text, "kubevirt")
    options.add_argument("--strict", action="store_true", help="fail when something is lost")
    parsed = options.parse_args(given)
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
