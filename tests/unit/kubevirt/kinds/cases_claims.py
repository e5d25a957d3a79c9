"""V116 and V117: devices and networks by resource claims."""

from typing import Any

from paddock.kubernetes.schema.finding import CauseType
from tests.unit.kubevirt.kinds.cases import Case

_SETTINGS = {"gates": frozenset({"HostDevices", "NetworkDevicesWithDRA"})}
_NETWORKS, _CARDS = "P.networks", "P.domain.devices.interfaces"
_GPUS, _DEVICES = "P.domain.devices.gpus", "P.domain.devices.hostDevices"


def _network(name: str = "n", **claim: str) -> dict[str, Any]:
    return {"name": name, "resourceClaim": claim or {"claimName": "c", "requestName": "r"}}


def _device(name: str) -> dict[str, Any]:
    return {"name": name, "claimName": "c", "requestName": "r"}


def _card(name: str = "n", binding: str = "sriov") -> dict[str, Any]:
    return {"name": name, binding: {}}


_CLAIMS = {"P.resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}
_GOOD = {**_CLAIMS, _NETWORKS: [_network()], _CARDS: [_card()]}
_MIXED = {_NETWORKS: [_network(), {"name": "m", "multus": {"networkName": "m"}}], _CARDS: [_card(), _card("m", "bridge")]}


def _claim(number: int, bad: dict[str, Any], field: str, words: str, cause: CauseType = CauseType.INVALID) -> Case:
    return Case(number, f"{field}: {words}", {**_GOOD, **bad}, field, words, _GOOD, cause=cause, settings=_SETTINGS)


def _twice(bad: dict[str, Any], field: str, words: str) -> Case:
    return Case(117, f"{field}: {words}", {**_CLAIMS, **bad}, field, words, _GOOD, cause=CauseType.DUPLICATE, settings=_SETTINGS)


CASES: tuple[Case, ...] = (
    _claim(116, {_NETWORKS: [_network(claimName="c")]}, "P.networks[0].resourceClaim.requestName", "Required value", CauseType.REQUIRED),
    _claim(116, {_NETWORKS: [_network(requestName="r")]}, "P.networks[0].resourceClaim.claimName", "Required value", CauseType.REQUIRED),
    _claim(
        116,
        {_NETWORKS: [_network(claimName="d", requestName="r")]},
        "P.networks[0].resourceClaim.claimName",
        "add the claim to resourceClaims",
        CauseType.NOT_FOUND,
    ),
    _claim(116, {_CARDS: [_card(binding="bridge")]}, _CARDS, "needs a card with sriov"),
    _claim(116, _MIXED, _NETWORKS, "exclude each other"),
    _twice({_NETWORKS: [_network(), _network("m")], _CARDS: [_card(), _card("m")]}, "P.networks[1]", "networks[0] has it already"),
    _twice({_NETWORKS: [_network()], _CARDS: [_card()], _GPUS: [_device("g")]}, "P.networks[0]", "gpus[0] has it already"),
    _twice({_NETWORKS: [_network()], _CARDS: [_card()], _DEVICES: [_device("d")]}, "P.networks[0]", "hostDevices[0] has it already"),
    _twice({_GPUS: [_device("g"), _device("h")]}, "P.domain.devices.gpus[1]", "gpus[0] has it already"),
    _twice({_GPUS: [_device("g")], _DEVICES: [_device("d")]}, "P.domain.devices.hostDevices[0]", "gpus[0] has it already"),
)
