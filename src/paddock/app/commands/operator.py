"""`paddock operator`: runs the controllers of other dialects against a cluster."""

from paddock.app.operator import options, process
from paddock.cli import arguments
from paddock.cli.console import Console

TEXT = """Run the controllers for Stakater's, Vitistack's and Kubermatic's resources against a Kubernetes API with KubeVirt and CDI, and
those for VirtRigaud's against any Kubernetes API.
An environment variable named in brackets applies when its option is absent."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    return options.parser(TEXT)


def run(argv: list[str], console: Console) -> int:
    """Run until a signal ends the operator."""
    options.refuse(argv)
    parsed = parser().parse_args(argv)

    return process.run(parsed)
