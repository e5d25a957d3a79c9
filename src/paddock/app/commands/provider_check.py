"""`paddock provider check`: looks at a hypervisor before somebody writes a Provider for it."""

import argparse
import asyncio
import os
from pathlib import Path

import msgspec

from paddock.app.provider import examination
from paddock.app.provider.examination import ExaminedEndpoint
from paddock.base.lines import one_line
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD
from paddock.contract.examination import ProviderFinding
from paddock.contract.factory import CREDENTIALS

TEXT = """Look at a hypervisor before you write a Provider for it: the name and port of its endpoint, its certificate, the
credentials, and what the driver needs there. Nothing is changed."""
_EXITS = {0: "a Provider would work", 1: "something stands in its way", 2: "wrong usage, or no driver of this type"}
_WORDS = {"good": "ok", "warning": "warning", "bad": "bad"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("provider check", TEXT, exits=_EXITS)
    options.add_argument("--type", metavar="TYPE", required=True, help="Type of the Provider: libvirt, vsphere, ... or MODULE:NAME")
    options.add_argument("--endpoint", metavar="URL", default="", help="Endpoint of the Provider")
    words = f"Directory with a file for each key of its Secret (default: {CREDENTIALS})"
    options.add_argument("--credentials", metavar="DIR", type=Path, default=CREDENTIALS, help=words)
    options.add_argument("--insecure-skip-verify", action="store_true", help="Take any certificate, as the Provider's field does")
    arguments.add_choice(options, ("-o", "--output"), ("text", "json"), "Output format (default: text)", "text")
    return options


def run(argv: list[str], console: Console) -> int:
    """Print each finding as it is made."""
    parsed = parser().parse_args(argv)
    findings = asyncio.run(_examine(parsed, console))
    if parsed.output == "json":
        console.out(msgspec.json.format(msgspec.json.encode(findings), indent=2).decode() + "\n")
    return FINDINGS if any(each.grade == "bad" for each in findings) else GOOD


async def _examine(parsed: argparse.Namespace, console: Console) -> list[ProviderFinding]:
    given = ExaminedEndpoint(
        type=parsed.type,
        endpoint=parsed.endpoint,
        credentials=parsed.credentials,
        verify=not parsed.insecure_skip_verify,
        environment=dict(os.environ),
    )
    findings = []
    async for each in examination.examine(given):
        findings.append(each)
        if parsed.output == "text":
            console.out(line(each))
            console.flush()
    return findings


def line(provider_finding: ProviderFinding) -> str:
    """The lines of a finding."""
    fix = f"{'':<29}fix: {one_line(provider_finding.fix)}\n" if provider_finding.fix else ""
    return f"{_WORDS[provider_finding.grade]:<9}{provider_finding.check:<20}{one_line(provider_finding.text)}\n{fix}"
