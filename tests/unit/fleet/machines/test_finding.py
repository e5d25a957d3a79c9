"""Machines by name: an object of a dialect and what was made of it are one."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from paddock.fleet.kinds import MACHINES, VM, VMI
from paddock.fleet.machines import finding
from paddock.fleet.machines.finding import AmbiguousMachine, MachineNotFound, MachineView
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse
from tests.kit.declarations.frontkinds import STAKATER, VIRTRIGAUD, VITISTACK
from tests.unit.fleet.machines.examples import Data, stakater, virtrigaud, vitistack, vm, vmi


class Shelf:
    """A server that has these objects and nothing else."""

    def __init__(self, objects: Sequence[Data], refused: Sequence[str] = ()) -> None:
        self._objects = {kind: [each for each in objects if _is(kind, each)] for kind in MACHINES}
        self._refused = refused
        self.asked: list[str] = []

    async def send(self, ask: TransportRequest) -> TransportResponse:
        path = ask.target.partition("?")[0]
        self.asked.append(path)
        for kind, objects in self._objects.items():
            if f"/{kind.group}/{kind.version}/" not in path or kind.plural not in path.split("/"):
                continue
            if kind.qualified in self._refused:
                return _reply(403, {"kind": "Status", "reason": "Forbidden", "message": "ada may not"})
            name = path.rpartition(f"/{kind.plural}")[2].removeprefix("/")
            scope = path.partition("/namespaces/")[2].partition("/")[0]
            here = [each for each in objects if scope in ("", each["metadata"]["namespace"])]
            if not name:
                return _reply(200, {"metadata": {"resourceVersion": "1"}, "items": here})
            if found := [each for each in here if each["metadata"]["name"] == name]:
                return _reply(200, found[0])
        return _reply(404, {"kind": "Status", "reason": "NotFound", "message": "not there"})

    async def stream(self, ask: TransportRequest) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        pass


def _is(kind: Any, data: Data) -> bool:
    return bool(data["kind"] == kind.kind and data["apiVersion"].startswith(f"{kind.group}/"))


def _reply(code: int, data: Data) -> TransportResponse:
    return TransportResponse(code, {}, json.dumps(data).encode())


def find(text: str, *objects: Data, refused: Sequence[str] = ()) -> MachineView:
    async def script() -> MachineView:
        async with Client(Shelf(objects, refused)) as client:
            return await finding.find(client, text, "default")

    return asyncio.run(script())


def every(*objects: Data, labels: str = "", refused: Sequence[str] = ()) -> list[MachineView]:
    async def script() -> list[MachineView]:
        async with Client(Shelf(objects, refused)) as client:
            return await finding.every(client, None, labels)

    return asyncio.run(script())


OF_STAKATER = (stakater(), vm(owner=stakater()), vmi())
OF_VITISTACK = (vitistack(vm_name="made"), vm("made", owner=vitistack()), vmi("made"))
RIGAUD = virtrigaud(provider={"namespace": "default", "name": "default-db", "uid": "vm-default-db"}, id="x")
OF_RIGAUD = (RIGAUD, vm("default-db", owner=RIGAUD), vmi("default-db"))


@pytest.mark.parametrize(
    ("text", "objects", "kind"),
    [
        ("web", (vm(), vmi()), VM),
        ("web", (vmi(),), VMI),
        ("vmi/web", (vm(), vmi()), VM),
        ("web", OF_STAKATER, STAKATER),
        ("vm/web", OF_STAKATER, STAKATER),
        ("vmi/web", OF_STAKATER, STAKATER),
        ("node", OF_VITISTACK, VITISTACK),
        ("made", OF_VITISTACK, VITISTACK),
        ("db", OF_RIGAUD, VIRTRIGAUD),
        ("vmi/default-db", OF_RIGAUD, VIRTRIGAUD),
        ("virtualmachines.infra.virtrigaud.io/db", OF_RIGAUD, VIRTRIGAUD),
    ],
)
def test_one_machine_is_found_by_each_of_its_names(text: str, objects: tuple[Data, ...], kind: object) -> None:
    found = find(text, *objects)
    assert found.kind is kind
    assert found.vmi is not None
    assert (found.vm is None) == (kind is VMI)


@pytest.mark.parametrize("text", ["db", "virtrigaud/db", "vm/db"])
def test_what_a_provider_made_is_no_second_machine_before_the_status_names_it(text: str) -> None:
    front, made = virtrigaud(), vm("db")
    made["metadata"]["labels"] = {"virtrigaud.io/owner-uid": front["metadata"]["uid"]}
    made["metadata"]["annotations"] = {"virtrigaud.io/owner": "default/db"}
    assert find(text, front, made, vmi("db")).kind is VIRTRIGAUD
    (one,) = every(front, made, vmi("db"))
    assert (one.kind, one.vm_key, one.vmi_key) == (VIRTRIGAUD, Key("default", "db"), Key("default", "db"))
    made["metadata"]["labels"] = {"virtrigaud.io/owner-uid": "another"}
    assert [each.kind for each in every(front, made)] == [VIRTRIGAUD, VM]


def test_a_name_that_two_machines_have_is_refused_with_the_choices() -> None:
    # The VirtualMachine is not made of the other object: it has taken its name.
    with pytest.raises(AmbiguousMachine, match="say which one: stakater/web, vm/web"):
        find("web", stakater(), vm())
    assert find("vm/web", stakater(), vm()).kind is VM
    assert find("stakater/web", stakater(), vm()).vm is None


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("wbe", 'did you mean "web"'),
        ("else", "there is one in namespace other: add -n other"),
        ("nothing-like-it", "`paddock ls` lists them"),
        ("stakater/web", 'did you mean "web"'),
    ],
)
def test_a_name_that_nothing_has(text: str, hint: str) -> None:
    with pytest.raises(MachineNotFound, match=hint):
        find(text, vm(), vm("else", namespace="other"))


def test_a_namespace_without_machines() -> None:
    with pytest.raises(MachineNotFound, match="the namespace has no machines"):
        find("web")


def test_kinds_that_may_not_be_read_are_left_out() -> None:
    others = [each.qualified for each in MACHINES if each is not VM]
    assert find("web", *OF_STAKATER, refused=others).kind is VM
    assert [each.kind for each in every(*OF_STAKATER, refused=others)] == [VM]
    with pytest.raises(Forbidden):
        find("web", vm(), refused=[each.qualified for each in MACHINES])
    with pytest.raises(Forbidden):
        every(vm(), refused=[each.qualified for each in MACHINES])


def test_all_machines_in_order() -> None:
    found = every(*OF_STAKATER, *OF_VITISTACK, *OF_RIGAUD, vm("alone"), vmi("loose"), vm("far", namespace="another"))
    assert [str(each) for each in found] == ["vm/far", "vm/alone", "virtrigaud/db", "vmi/loose", "vitistack/node", "stakater/web"]


def test_labels_select_by_the_object_that_the_user_wrote() -> None:
    labelled = stakater()
    labelled["metadata"]["labels"] = {"app": "shop"}
    found = every(labelled, *OF_STAKATER[1:], *OF_VITISTACK, labels="app in (shop),!old")
    assert [str(each) for each in found] == ["stakater/web"]
    assert found[0].vm is not None


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        (MachineView(kind=VIRTRIGAUD, data=virtrigaud(id="vm-17")), "it runs on another hypervisor, by Provider esx"),
        (MachineView(kind=STAKATER, data=stakater()), "it has no VirtualMachine yet"),
        (MachineView(kind=VMI, data=vmi()), "it is an instance without a VirtualMachine"),
    ],
)
def test_a_machine_without_a_virtual_machine(machine: MachineView, why: str) -> None:
    with pytest.raises(MachineNotFound, match=why):
        finding.needs_vm(machine, "open the console")
