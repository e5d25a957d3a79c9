"""`paddock plan`: predicts what each change of a manifest does to the machine, before it is applied."""

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from paddock.base.lines import one_line
from paddock.cli import arguments, serverplans, servers, targets
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD, UNUSABLE
from paddock.fleet.documents import planlines, report
from paddock.fleet.documents.inputobjects import InputObjects, gather
from paddock.fleet.documents.objects import InputReader
from paddock.fleet.documents.planlines import NEW, NOT_ON_SERVER, REFUSED, WAITS, PlanLine
from paddock.fleet.documents.rendering import RenderSummary
from paddock.fleet.documents.verdicts import FAILS
from paddock.fleet.servers.session import ServerSession
from paddock.fleet.tenants import forecasting, serverforecasts
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.plan.changes.differences import ABSENT, format_named
from paddock.kubevirt.plan.changes.effects import Effect
from paddock.kubevirt.plan.quotas.forecast import QuotaForecast

_TEXT = """Show the effect of each changed field on the machine: none, live, restart, recreate or data loss. Changes that
validation refuses or that cannot be carried out are listed, too, and so is what the objects add to each quota of their namespaces. The
objects are compared with those on the server, or with the manifests of --against, which needs no server."""
_EXITS = {0: "success", 1: "a change is refused, fails, loses data or exceeds a quota", 2: "wrong usage or unreadable input"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("plan", _TEXT, "[OPTIONS] -f FILE...", _EXITS)
    arguments.add_files(options)
    options.add_argument(
        "--against", metavar="OLD", nargs="+", help="Manifests as they were applied before: files, directories or - (default: the server)"
    )
    targets.add_target(options)
    arguments.add_format(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    settings = targets.settings(parsed, console)
    reader = InputReader(console, settings)
    old = gather(reader, parsed.against, console) if parsed.against else None
    new = gather(reader, arguments.files(options, parsed), console)
    if reader.unusable:
        return UNUSABLE
    if new.refused or (old is not None and old.refused):
        return FINDINGS
    if old is None:
        return _on_server(parsed, console, new, settings)
    steps = planlines.lines(old, new, RenderSummary(console), settings)
    return _show(steps, new, forecasting.of_manifests(old, new), parsed.output, console)


def _on_server(parsed: argparse.Namespace, console: Console, objects: InputObjects, settings: AdmissionSettings) -> int:
    """Plan against the objects of the server."""

    async def planned() -> int:
        async with servers.connected(parsed, console) as session:
            steps, forecast = await _compared(session, objects, settings, console)
        return _show(steps, objects, forecast, parsed.output, console)

    return servers.serve(planned())


async def _compared(
    session: ServerSession, objects: InputObjects, settings: AdmissionSettings, console: Console
) -> tuple[list[PlanLine], QuotaForecast]:
    sides = await serverplans.sides(session, objects.subjects, settings)
    around = await serverforecasts.around(session, sides.whole)
    old, new = (msgspec.structs.replace(each, object_set=each.object_set.within(around)) for each in (sides.old, sides.new))
    steps = planlines.lines(old, new, RenderSummary(console), settings, NOT_ON_SERVER)
    return [*sides.refused, *steps], await serverforecasts.on_server(session, sides.whole)


def _show(steps: Sequence[PlanLine], objects: InputObjects, forecast: QuotaForecast, output: str, console: Console) -> int:
    """Print a plan; return the exit code."""
    steps = [*steps, *planlines.lacking(objects, forecast)]
    _print(steps, forecast, output, console)
    return FINDINGS if any(step.effect in (REFUSED, WAITS, FAILS, Effect.LOSS) for step in steps) else GOOD


def _print(steps: Sequence[PlanLine], forecast: QuotaForecast, output: str, console: Console) -> None:
    if output != "text":
        quotas = [msgspec.structs.asdict(each) for each in forecast.bounds]
        data = {"changes": [_as_data(step) for step in steps], **({"quotas": quotas} if quotas else {})}
        console.out(report.structured(data, output))
        return
    for step in steps:
        parts = [f"{step.source}:{step.line}:{step.column}", step.effect, step.title, step.change, step.why]
        console.out(one_line(": ".join(part for part in parts if part)) + "\n")
    for line in planlines.quotas(forecast):
        console.out(one_line(line) + "\n")
    counts = Counter(step.effect for step in steps)
    order = [*map(str, Effect), FAILS, REFUSED, WAITS, NEW, "unknown"]
    console.say(", ".join(f"{counts[effect]} {effect}" for effect in order if counts[effect]) or "nothing changes")


def _as_data(step: PlanLine) -> dict[str, Any]:
    data: dict[str, Any] = {"object": step.title, "effect": step.effect}
    if step.difference is not None:
        data["field"] = format_named(step.difference.named)
        values = {"before": step.difference.before, "after": step.difference.after}
        data.update({name: value for name, value in values.items() if value is not ABSENT})
    elif step.change:
        data["field"] = step.change
    return {**data, "why": step.why, "file": step.source, "line": step.line, "column": step.column}
