"""Of a KubeVirt machine that says everything there is, no value is lost in silence."""

import copy
from typing import Any

import msgspec

from paddock.dialects.vitistack.translate import from_kubevirt
from paddock.kubernetes import catalog
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import Path, format_path
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from tests.kit.declarations.documents import fullest
from tests.unit.dialects.vitistack.translate.making import STANDARD, Json
from tests.unit.dialects.vitistack.translate.vms import INSTANCE


def leaves(value: Any, path: Path = ()) -> list[Path]:
    entries = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    return [path] if not entries else [leaf for key, member in entries for leaf in leaves(member, (*path, key))]


def spread(raw: Json) -> Json:
    """The fullest machine, with one volume and disk for each source: a volume has only one."""
    made = copy.deepcopy(raw)
    inner = made["spec"]["template"]["spec"]
    (volume,) = inner["volumes"]
    inner["volumes"] = [{"name": f"v{index}", name: volume[name]} for index, name in enumerate(volume) if name != "name"]
    for each in inner["volumes"]:
        # One source for each document, too.
        if "cloudInitNoCloud" in each:
            each["cloudInitNoCloud"] = {"userData": "#!", "networkData": "version: 2"}
    (disk,) = inner["domain"]["devices"]["disks"]
    inner["domain"]["devices"]["disks"] = [
        *({"name": each["name"], "disk": {"bus": "sata"}, "serial": f"s-{each['name']}"} for each in inner["volumes"]),
        disk | {"name": "other"},
    ]
    return made


def without(raw: Json, path: Path) -> Json:
    made = copy.deepcopy(raw)
    place: Any = made
    for part in path[:-1]:
        place = place[part]
    del place[path[-1]]
    return made


# What every Machine has, so that saying it makes no difference.
ALWAYS = (
    f"{INSTANCE}.domain.devices.networkInterfaceMultiqueue",
    f"{INSTANCE}.domain.devices.autoattachPodInterface",
    f"{INSTANCE}.domain.devices.autoattachGraphicsDevice",
    f"{INSTANCE}.domain.devices.autoattachSerialConsole",
    f"{INSTANCE}.domain.devices.autoattachMemBalloon",
    f"{INSTANCE}.domain.devices.filesystems[0].virtiofs",
    f"{INSTANCE}.volumes[15].containerPath.readOnly",
    # the fullest machine has the values that hold anyway
    f"{INSTANCE}.domain.cpu.cores",
    f"{INSTANCE}.domain.cpu.sockets",
    f"{INSTANCE}.domain.cpu.threads",
    f"{INSTANCE}.domain.firmware.bootloader.efi.secureBoot",
    # with Hyper-V enlightenments
    f"{INSTANCE}.domain.clock.timer.pit.tickPolicy",
    f"{INSTANCE}.domain.clock.timer.hyperv.present",
)


def test_of_a_machine_that_says_everything_nothing_is_silent() -> None:
    """Each value of the fullest machine is taken away in turn: what is made or what is told has to be another."""
    kind = catalog.find("kubevirt.io", "VirtualMachine")
    assert kind is not None
    raw = spread(fullest(kind))

    def outcome(document: Json) -> bytes:
        made = from_kubevirt(from_data(document, VirtualMachine), ObjectSet(), STANDARD)
        return msgspec.json.encode([made.value, made.losses])

    before = outcome(raw)
    places = [path for path in leaves(raw) if path[0] == "spec" and path[-1] != "enabled"]
    silent = [format_path(path) for path in places if outcome(without(raw, path)) == before]
    assert len(places) > 200
    assert set(silent) == set(ALWAYS)
