"""`paddock operator`: runs the controllers of other dialects against a cluster."""

from paddock.cli.console import Console

TEXT = """Run the controllers for Stakater's, Vitistack's and Kubermatic's resources against a Kubernetes API with KubeVirt and CDI.
An environment variable named in brackets applies when its option is absent."""


def run(given: list[str], console: Console) -> int:
    """Run until a signal ends the operator."""
    from paddock.app.operator import options  # noqa: PLC0415 - the text above is all that `paddock help operator` needs first

    parsed = options.parser(TEXT).parse_args(given)

    from paddock.app.operator import process  # noqa: PLC0415 - everything that an operator needs; `--help` does without

    return process.run(parsed)
