"""``python -m tools.providerload``: measures a provider under load."""

import argparse
import asyncio
import random
import sys

import msgspec

from paddock.app.provider import connection, machineoptions
from paddock.base.errors import PaddockError
from paddock.base.lines import one_line
from paddock.cli import arguments
from paddock.cli.arguments import HelpRequested, Parser
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD, UNUSABLE
from paddock.contract import messages as m
from tools.providerload.figures import LoadReport, OperationFigures
from tools.providerload.generator import OPERATIONS, LoadGenerator, LoadSettings

TEXT = """Measure a provider under load. Machines are created, started, snapshotted, stopped, reconfigured, cloned and deleted for
real; an operation counts when its effect shows. Only machines of this run are deleted."""
_EXITS = """exit codes:
  0  every operation had its effect
  1  an operation failed, or a machine could not be deleted
  2  no answer from the provider, nothing was done, or wrong usage"""
_MOST = 100_000


def parser() -> Parser:
    """Return the parser of the options."""
    layout = argparse.RawDescriptionHelpFormatter
    options = Parser(prog="python -m tools.providerload", description=TEXT, epilog=_EXITS, formatter_class=layout, allow_abbrev=False)
    options.add_argument("--machines", metavar="N", type=_count, default=10, help="Machines to take through their lives (default: 10)")
    options.add_argument("--concurrency", metavar="N", type=_count, default=4, help="Machines to work on at a time (default: 4)")
    options.add_argument(
        "--operation",
        metavar="NAME",
        action="append",
        default=[],
        help="Operation to do beside create and delete: power, describe, snapshot, reconfigure or clone; repeatable (default: all)",
    )
    arguments.add_choice(options, ("-o", "--output"), ("text", "json"), "Output format (default: text)", "text")
    connection.add_options(options)
    machineoptions.add_options(options)
    return options


def run(given: list[str], console: Console) -> int:
    """Run the load and print its figures."""
    options = parser()
    parsed = options.parse_args(given)
    connection.check_options(options, parsed)
    unknown = set(parsed.operation) - set(OPERATIONS)
    if unknown:
        options.error(f"unknown operation {', '.join(sorted(unknown))}; there are {', '.join(OPERATIONS)}")
    try:
        report = asyncio.run(_load(parsed))
    except PaddockError as error:
        console.say(f"providerload: the provider cannot be measured: {error}")
        return UNUSABLE
    if parsed.output == "json":
        console.out(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n")
    else:
        console.out(table(report))
    if not report.operations:
        return UNUSABLE
    return FINDINGS if report.errors or report.leftovers else GOOD


async def _load(parsed: argparse.Namespace) -> LoadReport:
    load = LoadSettings(machines=parsed.machines, workers=parsed.concurrency, operations=frozenset(parsed.operation or OPERATIONS))
    settings = msgspec.structs.replace(machineoptions.settings(parsed), prefix="bench", poll_seconds=0.05)
    async with connection.connect(parsed, calls=parsed.concurrency) as driver:
        capabilities = await driver.get_capabilities(m.GetCapabilitiesRequest())
        return await LoadGenerator(driver, load, settings, capabilities, random.Random()).run()


def table(report: LoadReport) -> str:
    """The figures as text; latencies in milliseconds."""
    rows = [("OPERATION", "COUNT", "ERRORS", "PER S", "P50 MS", "P95 MS", "P99 MS", "MAX MS"), *map(_row, report.operations)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
    lines += [f"error, {count} times: {one_line(text)}" for text, count in report.errors.items()]
    lines += [f"left behind: {one_line(each)}" for each in report.leftovers]
    return "\n".join([*lines, f"{report.seconds:.1f} s"]) + "\n"


def _row(figures: OperationFigures) -> tuple[str, ...]:
    latencies = (figures.p50, figures.p95, figures.p99, figures.longest)
    counts = (figures.operation, str(figures.count), str(figures.errors), f"{figures.per_second:.1f}")
    return (*counts, *(f"{seconds * 1000:.1f}" for seconds in latencies))


def _count(word: str) -> int:
    if not (word.isascii() and word.isdecimal() and 0 < int(word) <= _MOST):
        raise argparse.ArgumentTypeError(f"{word!r} is no number from 1 to {_MOST}")
    return int(word)


def main() -> int:
    """Run with the arguments of this process."""
    console = Console()
    try:
        return run(sys.argv[1:], console)
    except HelpRequested as request:
        console.out(str(request))
        return GOOD
    except PaddockError as error:
        console.say(f"providerload: {error}")
        return UNUSABLE


if __name__ == "__main__":
    sys.exit(main())
