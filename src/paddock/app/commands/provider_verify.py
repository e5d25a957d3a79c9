"""`paddock provider verify`: runs the cases of a conformance spec on a server."""

import argparse
import asyncio
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path

import msgspec

from paddock.app.commands.provider_conformance import as_data, code, line, summary
from paddock.app.provider import casesteps
from paddock.base.errors import Terminal
from paddock.cli import arguments, serveraccess
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.contract.conformance.results import CaseResult, SuiteResult
from paddock.dialects.virtrigaud.plan.cases import document
from paddock.dialects.virtrigaud.plan.cases.document import BadCaseSpec, LifecycleCase
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https

TEXT = """Run the cases of a conformance spec of VirtRigaud on a server: objects are made, changed, waited for, compared and
deleted as its steps say. Without --file, the two basic cases run on a Provider of type qemu; --set image=URL names their image."""
_EXITS = {
    0: "cases ran, and all of them passed",
    1: "a case failed, or something could not be deleted",
    2: "no case ran, no answer from the server, or wrong usage",
}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("provider verify", TEXT, exits=_EXITS)
    options.add_argument("-f", "--file", metavar="SPEC", type=Path, help="Spec with the cases (YAML; default: the two basic cases)")
    options.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="Value of ${NAME} in the spec; repeatable")
    options.add_argument("--list", action="store_true", help="List the cases, and run none")
    options.add_argument("--only", metavar="CASE", action="append", default=[], help="Case to run (with * and ?); repeatable")
    options.add_argument("--skip", metavar="CASE", action="append", default=[], help="Case to leave out (with * and ?); repeatable")
    arguments.add_choice(options, ("-o", "--output"), ("text", "json"), "Output format (default: text)", "text")
    arguments.add_server(options)
    return options


def run(argv: list[str], console: Console) -> int:
    """Run the cases and print their results."""
    parsed = parser().parse_args(argv)
    cases = _chosen(parsed)
    if parsed.list:
        width = max((len(each.name) for each in cases), default=0)
        console.out("".join(f"{each.name:<{width}}  {each.description}\n" for each in cases))
        return GOOD
    result = asyncio.run(_judge(parsed, cases, console))
    if parsed.output == "json":
        console.out(msgspec.json.format(msgspec.json.encode(as_data(result)), indent=2).decode() + "\n")
    else:
        console.out(summary(result))
    return code(result)


def _chosen(parsed: argparse.Namespace) -> list[LifecycleCase]:
    values = dict(each.split("=", 1) for each in parsed.set if "=" in each)
    if len(values) != len(parsed.set):
        raise Terminal("an option needs a name and a value of its own", fix="write --set NAME=VALUE")
    if parsed.list and parsed.file is None:
        values.setdefault("image", "")
    found = list(document.read(_text(parsed.file), values, str(parsed.file or "the basic spec")))
    if parsed.only:
        found = [each for each in found if any(fnmatchcase(each.name, pattern) for pattern in parsed.only)]
    return [each for each in found if not any(fnmatchcase(each.name, pattern) for pattern in parsed.skip)]


def _text(file: Path | None) -> str:
    if file is None:
        return (files("paddock.app.provider") / "cases" / "basic.yaml").read_text(encoding="utf-8")
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadCaseSpec(f"cannot read {file}", why=str(getattr(error, "strerror", "") or error)) from error


async def _judge(parsed: argparse.Namespace, cases: list[LifecycleCase], console: Console) -> SuiteResult:
    def observe(result: CaseResult) -> None:
        if parsed.output == "text":
            console.out(line(result))
            console.flush()

    access = serveraccess.find(parsed, console)
    async with Client(Https(access)) as client:
        return await casesteps.judge(client, parsed.namespace or access.namespace, cases, observe)
