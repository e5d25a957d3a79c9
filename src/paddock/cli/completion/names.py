"""Names that complete a command line: of the kubeconfig, of the declared kinds, and of the server, if one answers at once."""

import argparse
import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from paddock.base.errors import PaddockError
from paddock.cli import serveraccess
from paddock.cli.arguments import KnownNames
from paddock.cli.completion.candidates import Candidate, NamesQuery
from paddock.cli.console import Console
from paddock.kubernetes import catalog
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client, ClientSettings
from paddock.kubernetes.client.http.https import Https

# Longer than this nobody waits for a key; a server of this host answers in a hundredth of it.
SECONDS = 1.0
# The API version and the plural of a kind
ServedKind = tuple[str, str]


def machines() -> Sequence[ServedKind]:
    """Return what people call a machine, in the five dialects."""
    from paddock.fleet import kinds  # noqa: PLC0415 - commands, options and files complete without it

    return [(f"{each.group}/{each.version}", each.plural) for each in (kinds.VM, kinds.VMI, *kinds.FRONTS)]


def providers() -> Sequence[ServedKind]:
    """Return the kinds that look after machines elsewhere."""
    from paddock.fleet import kinds  # noqa: PLC0415 - as above

    found = (each.adapter.provider_kinds for each in kinds.FRONTS)
    return [(each.providers.head["apiVersion"], each.providers.plural) for each in found if each is not None]


def lookup(query: NamesQuery) -> Iterable[Candidate]:
    """Return the names that begin as the question says; none when they cannot be had quickly."""
    try:
        return [each for each in _found(query) if each.word.startswith(query.begun)]
    except (PaddockError, OSError, TimeoutError):
        return []


def _found(query: NamesQuery) -> Iterable[Candidate]:
    names, slash, _ = query.begun.partition("/")
    match query.names:
        case KnownNames.KINDS:
            return _kinds()
        case KnownNames.CONTEXTS:
            return _contexts(query.words)
        case KnownNames.NAMESPACES:
            return _of_server(query.words, (("", "namespaces"),), namespaced=False)
        case KnownNames.PROVIDERS:
            return _of_server(query.words, providers())
        case KnownNames.MACHINES:
            return _of_server(query.words, machines())
        case KnownNames.OBJECTS:
            found = _of_server(query.words, machines())
            return (Candidate(f"{names}/{each.word}", each.text) for each in found) if slash else found
    return ()


def _kinds() -> Iterator[Candidate]:
    for kind in catalog.every():
        yield Candidate(
            kind.plural if kind.dialect in ("core", "kubevirt") else f"{kind.plural}.{kind.group}", f"{kind.kind} of {kind.dialect}"
        )


def server_options(words: Sequence[str]) -> argparse.Namespace:
    """Return the options that choose a server, as far as the words have them."""
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name in ("-n", "--namespace"), ("--kubeconfig",), ("--context",):
        options.add_argument(*name, nargs="?", default="")
    try:
        parsed, _ = options.parse_known_args([each for each in words[:-1] if each != "--"])
    except argparse.ArgumentError:
        parsed = argparse.Namespace(namespace="", kubeconfig="", context="")
    parsed.kubeconfig = Path(parsed.kubeconfig) if parsed.kubeconfig else None
    parsed.namespace, parsed.context, parsed.verbose = parsed.namespace or "", parsed.context or "", False
    return parsed


def _contexts(words: Sequence[str]) -> Iterator[Candidate]:
    given = server_options(words)
    for name in kubeconfig.read(kubeconfig.paths(os.environ, given.kubeconfig)).contexts:
        yield Candidate(name)


def _of_server(words: Sequence[str], kinds: Sequence[tuple[str, str]], *, namespaced: bool = True) -> Iterable[Candidate]:
    async def ask() -> dict[str, str]:
        return await asyncio.wait_for(_listed(server_options(words), kinds, namespaced=namespaced), SECONDS)

    return [Candidate(name, text) for name, text in asyncio.run(ask()).items()]


async def _listed(arguments: argparse.Namespace, kinds: Sequence[tuple[str, str]], *, namespaced: bool) -> dict[str, str]:
    with open(os.devnull, "wb") as nowhere:
        access = serveraccess.find(arguments, Console(nowhere, nowhere))
    namespace = arguments.namespace or access.namespace
    found: dict[str, str] = {}

    async def one(client: Client, version: str, plural: str) -> None:
        root = f"/apis/{version}" if version else "/api/v1"
        path = f"{root}/namespaces/{namespace}/{plural}" if namespaced else f"{root}/{plural}"
        try:
            answer: dict[str, Any] = orjson.loads(await client.request("GET", path, (("limit", "500"),)))
        except PaddockError:
            # A server without the kind has no names of it; the other kinds have theirs.
            return
        for item in answer.get("items") or ():
            name, status = item["metadata"]["name"], item.get("status") or {}
            found.setdefault(name, str(status.get("printableStatus") or status.get("phase") or ""))

    async with Client(Https(access), ClientSettings(seconds=SECONDS, warnings=False)) as client:
        await asyncio.gather(*(one(client, version, plural) for version, plural in kinds))
    return found
