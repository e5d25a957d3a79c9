"""V86 to V103 and V119: networks and cards."""

from typing import Any

from paddock.kubernetes.schema.finding import CauseType
from tests.unit.kubevirt.kinds.cases import Case, network
from tests.unit.kubevirt.kinds.objects import GONE

_FIRST, _SECOND = "P.domain.devices.interfaces[0]", "P.domain.devices.interfaces[1]"
_MULTUS: dict[str, Any] = {"multus": {"networkName": "space/lan"}}
_DEFAULT: dict[str, Any] = {"multus": {"networkName": "lan", "default": True}}
_LAN = network(_MULTUS, bridge={})
_ALONE = {"P.networks": [{"name": "default", **_DEFAULT}], "P.domain.devices.interfaces": [{"name": "default", "bridge": {}}]}


def _ports(*ports: Any) -> dict[str, Any]:
    return {f"{_FIRST}.ports": list(ports)}


def _ranges(*ranges: tuple[int, int], **more: Any) -> dict[str, Any]:
    return {f"{_FIRST}.portRanges": [{"protocol": "TCP", "start": start, "end": end} for start, end in ranges], **more}


def _dhcp(**options: Any) -> dict[str, Any]:
    return {f"{_FIRST}.dhcpOptions": options}


CASES = (
    Case(86, "no card", {"P.networks[1]": {"name": "lan", **_MULTUS}}, "P.networks[1].name", "not found", _LAN),
    Case(87, "no network", {_SECOND: {"name": "lan", "bridge": {}}}, f"{_SECOND}.name", "not found", _LAN),
    Case(
        88,
        "networks",
        {"P.networks[1]": {"name": "default", **_MULTUS}},
        "P.networks[1].name",
        "Duplicate value",
        _LAN,
        cause=CauseType.DUPLICATE,
    ),
    Case(
        88,
        "cards",
        {_SECOND: {"name": "default", "bridge": {}}},
        f"{_SECOND}.name",
        "only one interface can be connected to one specific network",
        _LAN,
        cause=CauseType.DUPLICATE,
    ),
    Case(
        89,
        "name",
        {f"{_FIRST}.name": "a.b", "P.networks[0].name": "a.b"},
        f"{_FIRST}.name",
        "can only contain alphabetical characters, numbers, dashes",
        {f"{_FIRST}.name": "A-b_1", "P.networks[0].name": "A-b_1"},
    ),
    Case(90, "two", {f"{_FIRST}.bridge": {}}, _FIRST, "needs exactly one binding, got 2", {}),
    Case(
        90,
        "method and plugin",
        {f"{_FIRST}.binding": {"name": "passt"}},
        _FIRST,
        "needs exactly one binding, got 2",
        {f"{_FIRST}.masquerade": GONE, f"{_FIRST}.binding": {"name": "passt"}},
    ),
    Case(
        91, "masquerade", network(_MULTUS, masquerade={}), f"{_SECOND}.name", "Masquerade interface only implemented with pod network", _LAN
    ),
    Case(
        92,
        "gateway",
        {f"{_FIRST}.macAddress": "02:00:00:00:00:00"},
        f"{_FIRST}.macAddress",
        "reserved",
        {f"{_FIRST}.macAddress": "02:00:00:00:00:01"},
    ),
    Case(
        92,
        "gateway with dashes",
        {f"{_FIRST}.macAddress": "02-00-00-00-00-00"},
        f"{_FIRST}.macAddress",
        "reserved",
        {f"{_FIRST}.macAddress": "02:00:00:00:00:00", f"{_FIRST}.masquerade": GONE, f"{_FIRST}.bridge": {}},
    ),
    *(
        Case(
            93,
            name,
            {f"{_FIRST}.masquerade": GONE, f"{_FIRST}.{name}": {}},
            f"{_FIRST}.{name}",
            "has been discontinued since v1.3",
            {f"{_FIRST}.masquerade": GONE, f"{_FIRST}.passtBinding": {}},
        )
        for name in ("slirp", "passt", "macvtap")
    ),
    Case(
        94,
        "model",
        {f"{_FIRST}.model": "vmxnet3"},
        f"{_FIRST}.model",
        'Unsupported value: "vmxnet3"',
        {f"{_FIRST}.model": "e1000e"},
        cause=CauseType.NOT_SUPPORTED,
    ),
    *(
        Case(
            95,
            address or "empty",
            {f"{_FIRST}.macAddress": address},
            f"{_FIRST}.macAddress",
            "MAC address",
            {f"{_FIRST}.macAddress": "de:ad:00:00:be:af"},
        )
        for address in ("de:ad:00:00:be", "de:ad:00:00:be:af:be:af", "de:ad:00:00:be:zz")
    ),
    Case(
        96,
        "address",
        {f"{_FIRST}.pciAddress": "81:01.0"},
        f"{_FIRST}.pciAddress",
        "malformed PCI address",
        {f"{_FIRST}.pciAddress": "0000:81:01.0"},
    ),
    Case(
        97,
        "name twice",
        _ports({"name": "web", "port": 80}, {"name": "web", "port": 81}),
        f"{_FIRST}.ports[1].name",
        'Duplicate value: "web"',
        _ports({"name": "web", "port": 80}, {"port": 81}),
        cause=CauseType.DUPLICATE,
    ),
    *(
        Case(
            97,
            f"name {name}",
            _ports({"name": name, "port": 80}),
            f"{_FIRST}.ports[0].name",
            "lower-case letters",
            _ports({"name": "http-8", "port": 80}),
        )
        for name in ("Web", "a_b", "80", "a--b", "-a", "a-", "a234567890123456", "ä")
    ),
    Case(
        97,
        "protocol",
        _ports({"port": 80, "protocol": "ICMP"}),
        f"{_FIRST}.ports[0].protocol",
        'Unsupported value: "ICMP"',
        _ports({"port": 80, "protocol": "UDP"}),
        cause=CauseType.NOT_SUPPORTED,
    ),
    Case(
        97, "no port", _ports({"name": "web"}), f"{_FIRST}.ports[0].port", "Required value", _ports({"port": 1}), cause=CauseType.REQUIRED
    ),
    Case(97, "port 0", _ports({"port": 0}), f"{_FIRST}.ports[0].port", "between 1 and 65535", _ports({"port": 1})),
    Case(97, "port 65536", _ports({"port": 65536}), f"{_FIRST}.ports[0].port", "between 1 and 65535", _ports({"port": 65535})),
    Case(98, "beside ports", {**_ranges((1, 2)), **_ports({"port": 80})}, f"{_FIRST}.name", "mutually exclusive", _ranges((1, 2))),
    Case(
        98,
        "eleven",
        _ranges(*[(n, n) for n in range(1, 12)]),
        f"{_FIRST}.portRanges",
        "at most 10",
        _ranges(*[(n, n) for n in range(1, 11)]),
        cause=CauseType.TOO_MANY,
    ),
    Case(98, "backwards", _ranges((2, 1)), f"{_FIRST}.portRanges[0].end", "must not be less than start", _ranges((1, 1))),
    Case(
        98,
        "bridge",
        _ranges((1, 2), **{f"{_FIRST}.masquerade": GONE, f"{_FIRST}.bridge": {}}),
        f"{_FIRST}.name",
        "masquerade interface only",
        _ranges((1, 2)),
    ),
    Case(
        119,
        "ntp",
        _dhcp(ntpServers=["10.0.0.1", "ntp.example.com"]),
        f"{_FIRST}.dhcpOptions.ntpServers[1]",
        "IPv4 address",
        _dhcp(ntpServers=["10.0.0.1", "0127.0.0.3"]),
    ),
    Case(
        99,
        "public option",
        _dhcp(privateOptions=[{"option": 66, "value": "x"}]),
        "P",
        "use 224 to 254",
        _dhcp(privateOptions=[{"option": 224, "value": "x"}]),
    ),
    Case(
        99,
        "option twice",
        _dhcp(privateOptions=[{"option": 240, "value": "x"}] * 2),
        "P",
        "given twice",
        _dhcp(privateOptions=[{"option": 240, "value": "x"}, {"option": 254, "value": "y"}]),
        cause=CauseType.DUPLICATE,
    ),
    Case(100, "two pods", network({"pod": {}}, masquerade={}), "P.interfaces", "at most one pod network", _LAN, cause=CauseType.DUPLICATE),
    Case(
        101,
        "two defaults",
        {**_ALONE, "P.networks[1]": {"name": "second", **_DEFAULT}, _SECOND: {"name": "second", "bridge": {}}},
        "P.networks",
        "at most one default",
        _ALONE,
    ),
    Case(101, "pod and default", network(_DEFAULT, bridge={}), "P.networks", "pod network", _LAN),
    Case(102, "no type", network({}, bridge={}), "P.networks[1]", "exactly one network type", _LAN, cause=CauseType.REQUIRED),
    Case(102, "two types", network({**_MULTUS, "pod": {}}, bridge={}), "P.networks[1]", "exactly one network type", _LAN),
    Case(
        102, "no name", network({"multus": {"networkName": ""}}, bridge={}), "P.networks[1]", "networkName", _LAN, cause=CauseType.REQUIRED
    ),
    Case(
        103,
        "unknown",
        {f"{_FIRST}.state": "sideways"},
        f"{_FIRST}.state",
        'Unsupported value: "sideways"',
        {f"{_FIRST}.state": "down"},
        cause=CauseType.NOT_SUPPORTED,
    ),
    Case(
        103,
        "absent",
        network(_MULTUS, sriov={}, state="absent"),
        f"{_SECOND}.state",
        "only for the bridge binding",
        network(_MULTUS, bridge={}, state="absent"),
    ),
    Case(
        103,
        "absent default",
        {**_ALONE, f"{_FIRST}.state": "absent"},
        f"{_FIRST}.state",
        "not supported on the default network",
        {**_ALONE, f"{_FIRST}.state": "up"},
    ),
)
