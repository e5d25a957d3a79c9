"""Writes wishes about a machine: always into the object that the user wrote, in the words of its dialect, never behind its back.

A wish becomes an `ObjectWrite`, which says what it changes before it is sent. KubeVirt's own VirtualMachines are started and stopped by
KubeVirt's subresources, which write `spec.running` or `spec.runStrategy` as virtctl does.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, texts
from paddock.fleet.kinds import VMI
from paddock.fleet.machines.finding import MachineView, needs_vm
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.options import WriteOptions, merge_patch
from paddock.kubernetes.client.target import Key, Target
from paddock.kubevirt.plan.changes.adapters import FieldChange, Power

SUBRESOURCES = "/apis/subresources.kubevirt.io/v1"


class CannotWrite(Terminal):
    """A wish has no words in the dialect of a machine."""


class ObjectWrite(msgspec.Struct, frozen=True, kw_only=True):
    """One request. Either `document` is merged into an object, or the subresource at `path` is called with `document`."""

    document: Data
    # what changes: `spec.powerState: On -> Off`
    text: str
    target: Target[Data] | None = None
    key: Key | None = None
    path: str = ""


async def send(client: Client, write: ObjectWrite, *, dry_run: bool = False) -> None:
    if write.target is not None and write.key is not None:
        await client.patch(write.target, write.key, merge_patch(write.document), WriteOptions(dry_run=dry_run))
        return
    document = {**write.document, "dryRun": ["All"]} if dry_run else write.document
    await client.request("PUT", write.path, body=orjson.dumps(document) if document else b"")


def member(machine: MachineView, path: tuple[str, ...], value: Any) -> ObjectWrite:
    """Return the write of one member of the object that the user wrote."""
    document: Any = value
    for name in reversed(path):
        document = {name: document}
    before = at(machine.data, *path)
    text = f"{_shown(path)}: {_word(before)} -> {_word(value)}"
    return ObjectWrite(target=machine.kind.target, key=machine.key, document=document, text=text)


def call(plural: str, key: Key, verb: str, text: str, options: Mapping[str, Any] | None = None) -> ObjectWrite:
    """Return the call of a subresource of KubeVirt: `virtualmachines/start`, `virtualmachineinstances/pause`."""
    path = f"{SUBRESOURCES}/namespaces/{key.namespace}/{plural}/{key.name}/{verb}"
    return ObjectWrite(path=path, document=dict(options or {}), text=text)


def _shown(path: tuple[str, ...]) -> str:
    return "".join(f"[{name}]" if "/" in name else f".{name}" for name in path).removeprefix(".")


def _word(value: Any) -> str:
    return "(not set)" if value is None else str(value)


# --- running, and not running -----------------------------------------------------------------------------------------------


def power(machine: MachineView, wish: Power, *, force: bool = False, paused: bool = False) -> ObjectWrite:
    """Return the write that starts or stops a machine. With `force` a guest gets no time to shut down."""
    if machine.kind is VMI:
        fix = f"`paddock rm {machine}` ends it" if wish == "stop" else "make a VirtualMachine of it"
        raise CannotWrite(f"cannot {wish} {machine}", why="an instance without a VirtualMachine runs as long as it exists", fix=fix)
    if paused and machine.kind.front:
        raise CannotWrite(
            f"cannot start {machine} paused", why=f"{machine.dialect} has no word for it", fix="start it, and use `paddock pause`"
        )
    options: dict[str, Any] = {}
    if wish == "stop" and force:
        options = {"gracePeriod": 0}
    if machine.kind.front:
        asked = machine.kind.adapter.power(machine, wish, force=force)
        if isinstance(asked, FieldChange):
            return member(machine, asked.path, asked.value)
        return call("virtualmachines", needs_vm(machine, wish), wish, asked.text, options)
    if paused and not options:
        options = {"paused": True}
    return call("virtualmachines", machine.key, wish, _of_kubevirt(machine, wish), options)


def wants_to_run(machine: MachineView) -> bool:
    """Return whether the object that the user wrote wants the machine to run now."""
    if (wish := machine.kind.adapter.wants_to_run(machine.data)) is not None:
        return wish
    if machine.vm is not None and (running := at(machine.vm, "spec", "running")) is not None:
        return bool(running)
    return (texts(machine.vm, "spec", "runStrategy") or "Always") != "Halted"


def _of_kubevirt(machine: MachineView, wish: Power) -> str:
    running = at(machine.data, "spec", "running")
    if running is not None:
        return f"spec.running: {str(running).lower()} -> {'true' if wish == 'start' else 'false'}"
    strategy = texts(machine.data, "spec", "runStrategy")
    if wish == "start" and strategy == "Halted":
        return "spec.runStrategy: Halted -> Always"
    if wish == "stop" and strategy in ("Always", "Once"):
        return f"spec.runStrategy: {strategy} -> Halted"
    return f"status.stateChangeRequests: a request to {wish}"
