"""Provider objects of a server: read, and shown as a table or as a description."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from paddock.base.jsondata import Data
from paddock.base.lines import one_line
from paddock.cli import serveraccess
from paddock.cli.console import Console
from paddock.dialects.virtrigaud.kinds import provider
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import Key, Target, declared
from paddock.kubernetes.meta import ages

PROVIDERS: Target[Data] = declared(provider.KINDS[0], dict)
_NONE = "-"


async def listed(parsed: argparse.Namespace, console: Console) -> list[Data]:
    """The Providers of the chosen namespace, or of all, by namespace and name."""
    found = serveraccess.find(parsed, console)
    namespace = "" if parsed.all_namespaces else parsed.namespace or found.namespace
    async with Client(Https(found)) as client:
        return await in_namespace(client, namespace)


async def in_namespace(client: Client, namespace: str) -> list[Data]:
    """The Providers of a namespace, or of all for an empty one."""
    found = (await client.list(PROVIDERS, Selection(namespace=namespace))).items
    return sorted(found, key=lambda each: (each["metadata"].get("namespace", ""), each["metadata"]["name"]))


async def get(parsed: argparse.Namespace, console: Console) -> Data:
    found = serveraccess.find(parsed, console)
    async with Client(Https(found)) as client:
        return await client.get(PROVIDERS, Key(parsed.namespace or found.namespace, parsed.name))


def table(providers: Sequence[Data], now: float, *, namespaced: bool) -> str:
    """A line for each Provider; nothing without any."""
    if not providers:
        return ""
    rows = [("NAMESPACE", "NAME", "TYPE", "ENDPOINT", "RUNTIME", "HEALTHY", "VMS", "AGE"), *(_row(each, now) for each in providers)]
    return _aligned([row if namespaced else row[1:] for row in rows])


def _row(data: Data, now: float) -> tuple[str, ...]:
    metadata, spec, status = data["metadata"], data.get("spec") or {}, data.get("status") or {}
    healthy, machines = status.get("healthy"), status.get("connectedVMs")
    return (
        metadata.get("namespace", ""),
        metadata["name"],
        one_line(str(spec.get("type", _NONE))),
        one_line(str(spec.get("endpoint", _NONE))),
        one_line(str((status.get("runtime") or {}).get("phase", _NONE))),
        _NONE if healthy is None else str(healthy).lower(),
        _NONE if machines is None else str(machines),
        ages.age(metadata.get("creationTimestamp") or "", now),
    )


def description(data: Data, now: float) -> str:
    """The parts of a Provider that people look for, one below another."""
    metadata, spec, status = data["metadata"], data.get("spec") or {}, data.get("status") or {}
    runtime = status.get("runtime") or {}
    facts = {
        "Name": metadata["name"],
        "Namespace": metadata.get("namespace", ""),
        "Type": spec.get("type"),
        "Endpoint": spec.get("endpoint"),
        "Image": (spec.get("runtime") or {}).get("image"),
        "Runtime": runtime.get("phase"),
        "Runtime endpoint": runtime.get("endpoint"),
        "Runtime message": runtime.get("message"),
        "Healthy": status.get("healthy"),
        "Last health check": _when(status.get("lastHealthCheck"), now),
        "Version": status.get("version"),
        "Connected VMs": status.get("connectedVMs"),
        "Adoption": (status.get("adoption") or {}).get("message"),
        "Age": ages.age(metadata.get("creationTimestamp") or "", now),
    }
    width = max(map(len, facts)) + 2
    lines = [f"{name + ':':<{width}}{_shown(value)}\n" for name, value in facts.items()]
    return "".join([*lines, _conditions(status.get("conditions") or (), now), _capabilities(status.get("reportedCapabilities"))])


def _conditions(conditions: Sequence[Mapping[str, Any]], now: float) -> str:
    if not conditions:
        return "\nConditions: none\n"
    rows = [("TYPE", "STATUS", "REASON", "AGE", "MESSAGE")]
    for each in conditions:
        kind, state, reason, message = (one_line(str(each.get(name, ""))) for name in ("type", "status", "reason", "message"))
        rows.append((kind, state, reason, ages.age(each.get("lastTransitionTime") or "", now), message))
    return "\nConditions:\n" + "".join(f"  {line}\n" for line in _aligned(rows).splitlines())


def _capabilities(reported: Mapping[str, Any] | None) -> str:
    if reported is None:
        return "\nCapabilities: not reported\n"
    lines = [f"  {name}: {_shown(value)}\n" for name, value in sorted(reported.items())]
    return "\nCapabilities:\n" + "".join(lines)


def _when(text: str | None, now: float) -> str | None:
    return f"{text} ({ages.age(text, now)} ago)" if text else None


def _shown(value: Any) -> str:
    if value is None or value == "":
        return _NONE
    if isinstance(value, bool):
        return str(value).lower()
    return one_line(", ".join(map(str, value)) if isinstance(value, list) else str(value))


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows)
