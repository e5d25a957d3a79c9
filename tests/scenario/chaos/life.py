"""The clients of a server while it lives: writers of every kind of write, and watchers that resume wherever they were cut off."""

import asyncio
import contextlib
import random
from typing import Any

from tests.scenario.chaos.client import APPLY, JSON_PATCH, MERGE, Client, Data, Lost
from tests.scenario.chaos.ledger import TOKEN, Ledger, Watched
from tests.scenario.chaos.server import Server

NAMESPACED = "/api/v1/namespaces/default"
MAPS, SECRETS, WIDGETS = f"{NAMESPACED}/configmaps", f"{NAMESPACED}/secrets", "/apis/chaos.test/v1/namespaces/default/widgets"
CRDS, NAMESPACES = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/api/v1/namespaces"
FAMILY = f"{NAMESPACES}/family/configmaps"
TYPES = {MAPS: ("v1", "ConfigMap"), SECRETS: ("v1", "Secret"), WIDGETS: ("chaos.test/v1", "Widget")}


def definition(plural: str, kind: str, token: str) -> Data:
    """A CRD."""
    schema = {"type": "object", "properties": {"data": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": kind, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.chaos.test", "annotations": {TOKEN: token}},
        "spec": {"group": "chaos.test", "scope": "Namespaced", "names": names, "versions": [version]},
    }


class Writer:
    """Writes the objects of one collection that nobody else writes, one request after the other."""

    def __init__(self, number: int, ledger: Ledger, chance: random.Random) -> None:
        self._number = number
        self._ledger = ledger
        self._chance = chance
        self._count = 0
        self.answers = 0

    async def run(self, client: Client) -> None:
        """Write until the connection is lost."""
        with contextlib.suppress(Lost):
            while True:
                await self.step(client)

    async def step(self, client: Client) -> None:
        """One write; raises `Lost`."""
        name = f"w{self._number}-{self._chance.randrange(4)}"
        if self._ledger.entry(name).known is not None and self._chance.random() < 0.25:
            await self._delete(client, name)
        else:
            await self._write(client, name)
        self.answers += 1

    async def _delete(self, client: Client, name: str) -> None:
        self._ledger.entry(name).asked = ""
        status, said = await client.ask("DELETE", f"{self._ledger.path}/{name}")
        assert status == 200, said
        self._ledger.answered_deletion(name)

    async def _write(self, client: Client, name: str) -> None:
        entry = self._ledger.entry(name)
        self._count += 1
        token = f"{self._number}.{self._count}"
        method, path, body, kind = self._request(name, token, entry.known)
        entry.asked = token
        status, said = await client.ask(method, path, body, kind)
        assert status in (200, 201), said
        self._ledger.answered(name, said)

    def _request(self, name: str, token: str, known: tuple[int, str] | None) -> tuple[str, str, Any, str]:
        """A create, or one of the ways to change an object."""
        version, kind = TYPES[self._ledger.path]
        path = f"{self._ledger.path}/{name}"
        whole: Data = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "annotations": {TOKEN: token}}}
        # Some weight, so that commits take different numbers of pages.
        whole["data"] = {"text": "eHh4" * self._chance.choice((1, 50, 2000))}
        way = self._chance.randrange(4)
        if way == 0 or (known is None and way > 1):
            return ("POST", self._ledger.path, whole, "application/json") if known is None else self._put(path, whole, known)
        if way == 1:
            return "PATCH", f"{path}?fieldManager=chaos&force=true", whole, APPLY
        if way == 2:
            return "PATCH", path, {"metadata": {"annotations": {TOKEN: token}}}, MERGE
        place = "/metadata/annotations/" + TOKEN.replace("/", "~1")
        return "PATCH", path, [{"op": "replace", "path": place, "value": token}], JSON_PATCH

    def _put(self, path: str, whole: Data, known: tuple[int, str]) -> tuple[str, str, Any, str]:
        whole["metadata"]["resourceVersion"] = str(known[0])
        return "PUT", path, whole, "application/json"


async def watch(server: Server, ledger: Ledger, watched: Watched) -> bool:
    """Watch from where the watcher was; returns whether the stream, if it ever began, ended as it should."""
    try:
        async with server.client() as client:
            lines = await client.watch(f"{ledger.path}?watch=1&resourceVersion={watched.last}")
            watched.resumed += 1
            while (event := await lines.next()) is not None:
                # Less than ten thousand changes are never too old.
                assert event["type"] != "ERROR", event
                watched.take(event)
            return lines.clean
    except Lost:
        # The server went before it had heard of this one.
        return True


class Makers:
    """Definitions, namespaces and families: things whose making has more than one part."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._count = 0
        self.definitions = Ledger(CRDS)
        self.namespaces: set[str] = set()
        # owners that must have their dependents, and owners that are gone
        self.owners: dict[str, str] = {}
        self.gone: set[str] = set()

    async def run(self, client: Client) -> None:
        """Make things until the connection is lost."""
        try:
            while True:
                self._count += 1
                await self._chance.choice((self._define, self._found, self._raise, self._raise))(client, self._count)
        except Lost:
            return

    async def _define(self, client: Client, number: int) -> None:
        if number > 40:
            # Enough of them; each is compiled anew at every start.
            return await self._raise(client, number)
        name = f"kind{number}s.chaos.test"
        self.definitions.entry(name).asked = str(number)
        status, said = await client.ask("POST", CRDS, definition(f"kind{number}s", f"Kind{number}", str(number)))
        assert status == 201, said
        self.definitions.answered(name, said)
        return None

    async def _found(self, client: Client, number: int) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"n{number}"}}
        status, said = await client.ask("POST", NAMESPACES, body)
        assert status == 201, said
        self.namespaces.add(f"n{number}")

    async def _raise(self, client: Client, number: int) -> None:
        """An owner and its dependents; then the owner goes."""
        status, owner = await client.ask("POST", FAMILY, {"metadata": {"name": f"owner{number}"}})
        assert status == 201, owner
        uid = owner["metadata"]["uid"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": f"owner{number}", "uid": uid}
        for child in range(3):
            body = {"metadata": {"name": f"child{number}-{child}", "ownerReferences": [reference]}}
            status, said = await client.ask("POST", FAMILY, body)
            assert status == 201, said
        self.owners[uid] = f"owner{number}"
        if self._chance.random() < 0.8:
            policy = self._chance.choice(("Background", "Foreground"))
            # From here on nobody knows, until it is answered.
            del self.owners[uid]
            status, said = await client.ask("DELETE", f"{FAMILY}/owner{number}", {"propagationPolicy": policy})
            assert status == 200, said
            self.gone.add(uid)


async def gathered(*lives: Any) -> None:
    """Run all until all have ended; the first that fails ends the others."""
    async with asyncio.TaskGroup() as group:
        for life in lives:
            group.create_task(life)
