"""Commands against a server in this process: each command finds the objects, and what it wrote can be read afterwards."""

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from paddock.cli import servers
from paddock.cli.console import Console
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.access import Access, StaticCredential
from paddock.kubernetes.client.options import WriteOptions
from paddock.kubernetes.client.target import Key, plain
from tests.kit.servers.apiclient import inside
from tests.kit.servers.apiharness import Harness
from tests.unit.cli.commands import Answer, paddock
from tests.virtualtime import Clock

Data = dict[str, Any]
PLURALS = {
    "VirtualMachine": "virtualmachines",
    "VirtualMachineInstance": "virtualmachineinstances",
    "Machine": "machines",
    "VMClass": "vmclasses",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "VirtualMachineSnapshot": "virtualmachinesnapshots",
    "VMSnapshot": "vmsnapshots",
    "NetworkAttachmentDefinition": "network-attachment-definitions",
    "NetworkConfiguration": "networkconfigurations",
}


class FakeServer:
    """Objects that are there before a command; `found` has those of the same places after it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *objects: Data) -> None:
        self.objects = list(objects)
        self.found: list[Data] = []
        monkeypatch.setattr(servers, "connected", self._connected)

    def run(self, *words: str) -> Answer:
        """Run a command; what it wrote stays for the next one."""
        answer = paddock(*words)
        self.objects = [_fresh(each) for each in self.found]
        return answer

    @asynccontextmanager
    async def _connected(self, _: argparse.Namespace, __: Console) -> AsyncIterator[ServerSession]:
        async with Harness() as api, inside(api) as client:
            places = []
            for each in self.objects:
                group, _, version = each["apiVersion"].rpartition("/")
                target = plain(group, version, PLURALS[each["kind"]], each["kind"])
                made = await client.create(target, each, "default")
                places.append((target, each["metadata"]["name"]))
                if "status" in each:
                    await client.update(target, {**made, "status": each["status"]}, WriteOptions(subresource="status"))
            try:
                yield ServerSession(client, Access(server="https://fake", credentials=StaticCredential()), "default", Clock())
            finally:
                self.found = [await client.get(target, Key("default", name)) for target, name in places]


def _fresh(data: Data) -> Data:
    metadata = {key: value for key, value in data["metadata"].items() if key in ("name", "labels", "annotations")}
    return {**data, "metadata": metadata}
