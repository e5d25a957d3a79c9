"""`paddock provider conformance`: judges a provider by what it does to machines."""

import argparse
import asyncio
import random

import msgspec

from paddock.app.provider import connection, machineoptions
from paddock.base.lines import one_line
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD, UNUSABLE
from paddock.contract.conformance import suite
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.cases.catalog import CASES
from paddock.contract.conformance.results import CaseResult, SuiteResult

TEXT = """Judge a provider by what it does to machines. Each case makes machines of its own, looks for the effect of an
operation, and deletes what it made."""
_EXITS = {
    0: "cases ran, and all of them passed",
    1: "a case failed, or something could not be deleted",
    2: "no case ran, no answer from the provider, or wrong usage",
}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("provider conformance", TEXT, exits=_EXITS)
    options.add_argument("--list", action="store_true", help="List the cases, and run none")
    options.add_argument("--only", metavar="CASE", action="append", default=[], help="Case to run (with * and ?); repeatable")
    options.add_argument("--skip", metavar="CASE", action="append", default=[], help="Case to leave out (with * and ?); repeatable")
    arguments.add_choice(options, ("-o", "--output"), ("text", "json"), "Output format (default: text)", "text")
    connection.add_options(options)
    machineoptions.add_options(options)
    machineoptions.add_storage(options)
    return options


def run(argv: list[str], console: Console) -> int:
    """Run the cases and print their results."""
    options = parser()
    parsed = options.parse_args(argv)
    if parsed.list:
        width = max(len(each.name) for each in CASES)
        console.out("".join(f"{each.name:<{width}}  {each.text}\n" for each in CASES))
        return GOOD
    connection.check_options(options, parsed)
    cases = suite.select(suite.CaseSelection(only=tuple(parsed.only), skip=tuple(parsed.skip)))
    result = asyncio.run(_judge(parsed, cases, console))
    if parsed.output == "json":
        console.out(msgspec.json.format(msgspec.json.encode(as_data(result)), indent=2).decode() + "\n")
    else:
        console.out(summary(result))
    return code(result)


async def _judge(parsed: argparse.Namespace, cases: list[ConformanceCase], console: Console) -> SuiteResult:
    def observe(result: CaseResult) -> None:
        if parsed.output == "text":
            console.out(line(result))
            console.flush()

    async with connection.connect(parsed, calls=10) as driver:
        return await suite.judge(driver, machineoptions.settings(parsed), cases=cases, chance=random.Random(), observe=observe)


def line(result: CaseResult) -> str:
    """The line of a case."""
    reason = f": {one_line(result.reason)}" if result.reason else ""
    return f"{result.status:<8}{result.name} ({result.seconds:.1f} s){reason}\n"


def summary(result: SuiteResult) -> str:
    lines = [f"left behind: {one_line(each)}" for each in result.leftovers]
    if result.unreachable:
        lines.append(f"the provider does not answer: {one_line(result.unreachable)}")
    lines.append(f"{result.count('passed')} passed, {result.count('failed')} failed, {result.count('skipped')} skipped")
    return "\n".join(lines) + "\n"


def as_data(result: SuiteResult) -> dict[str, object]:
    return {
        "passed": result.count("passed"),
        "failed": result.count("failed"),
        "skipped": result.count("skipped"),
        "unreachable": result.unreachable,
        "leftovers": list(result.leftovers),
        "cases": [msgspec.to_builtins(each) for each in result.results],
    }


def code(result: SuiteResult) -> int:
    if not result.ran:
        return UNUSABLE
    return GOOD if result.good else FINDINGS
