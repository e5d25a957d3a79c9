"""`paddock operator`: look after the front doors of a cluster."""

from paddock.cli.console import Console

TEXT = "look after front-door objects of any Kubernetes API"


def run(given: list[str], console: Console) -> int:
    """Work until told to stop."""
    from paddock.app.operator import options  # noqa: PLC0415 - `paddock help` reads the text above and nothing else

    parsed = options.parser(TEXT).parse_args(given)

    from paddock.app.operator import process  # noqa: PLC0415 - everything that an operator needs; `--help` does without

    return process.run(parsed)
