"""V73 to V85: threads, probes, smaller devices, gates, DNS, labels."""

from collections.abc import Mapping
from typing import Any

from paddock.kubernetes.schema.finding import CauseType
from tests.unit.kubevirt.kinds.cases import VMI, Case, network, volume
from tests.unit.kubevirt.kinds.objects import GONE

_DEVICES = "P.domain.devices"
_POOL = {"P.domain.ioThreadsPolicy": "supplementalPool"}
_MULTUS = {
    "P.networks": [{"name": "default", "multus": {"networkName": "lan"}}],
    f"{_DEVICES}.interfaces": [{"name": "default", "bridge": {}}],
}
_DNS: dict[str, Any] = {"nameservers": ["10.0.0.1"]}
_TOKEN = volume(serviceAccount={"serviceAccountName": "robot"})


def _gated(label: str, gate: str, bad: Mapping[str, Any], field: str, words: str = "") -> Case:
    words = words or f"{gate} feature gate is not enabled"
    return Case(81, label, bad, field, words, bad, good_settings={"gates": frozenset({gate})})


def _gated_there(label: str, gate: str, bad: Mapping[str, Any], field: str) -> Case:
    """By KubeVirt alone."""
    there = {"target": "cluster"}
    words = f"{gate} feature gate is not enabled"
    return Case(81, label, bad, field, words, bad, settings=there, good_settings={**there, "gates": frozenset({gate})})


def _input(**members: str) -> dict[str, Any]:
    return {f"{_DEVICES}.inputs": [{"name": "tablet", "type": "tablet", **members}]}


CASES = (
    Case(
        73,
        "policy",
        {"P.domain.ioThreadsPolicy": "own"},
        "P.domain.ioThreadsPolicy",
        'Unsupported value: "own"',
        {"P.domain.ioThreadsPolicy": "auto"},
        cause=CauseType.NOT_SUPPORTED,
    ),
    Case(
        73,
        "no count",
        _POOL,
        "P.domain.ioThreads.count",
        "must be positive",
        {**_POOL, "P.domain.ioThreads.supplementalPoolThreadCount": 2},
    ),
    Case(
        73,
        "zero",
        {**_POOL, "P.domain.ioThreads.supplementalPoolThreadCount": 0},
        "P.domain.ioThreads.count",
        "must be positive",
        {**_POOL, "P.domain.ioThreads.supplementalPoolThreadCount": 1},
    ),
    *(
        case
        for probe in ("readinessProbe", "livenessProbe")
        for case in (
            Case(
                74,
                f"{probe} does nothing",
                {f"P.{probe}": {}},
                f"P.{probe}",
                "give one of",
                {f"P.{probe}": {"guestAgentPing": {}}},
                cause=CauseType.REQUIRED,
            ),
            Case(
                74,
                f"{probe} does two things",
                {f"P.{probe}": {"guestAgentPing": {}, "exec": {"command": ["true"]}}},
                f"P.{probe}",
                "exactly one probe type",
                {f"P.{probe}": {"exec": {"command": ["true"]}}},
            ),
            Case(
                75,
                f"{probe} by http",
                {f"P.{probe}.httpGet.port": 80, **_MULTUS},
                f"P.{probe}",
                "Pod Network",
                {f"P.{probe}.httpGet.port": 80},
            ),
            Case(
                75,
                f"{probe} by tcp",
                {f"P.{probe}.tcpSocket.port": 22, **_MULTUS},
                f"P.{probe}",
                "Pod Network",
                {f"P.{probe}.tcpSocket.port": 22, "P.networks": GONE, f"{_DEVICES}.interfaces": GONE},
            ),
        )
    ),
    Case(
        76,
        "eviction",
        {"P.evictionStrategy": "Maybe"},
        "P.evictionStrategy",
        'Unsupported value: "Maybe"',
        {"P.evictionStrategy": "External"},
        cause=CauseType.NOT_SUPPORTED,
    ),
    Case(
        77,
        "bus",
        _input(bus="ps2"),
        f"{_DEVICES}.inputs[0].bus",
        'Unsupported value: "ps2"',
        _input(bus="virtio"),
        cause=CauseType.NOT_SUPPORTED,
    ),
    Case(
        77,
        "type",
        _input(type="mouse"),
        f"{_DEVICES}.inputs[0].type",
        'Unsupported value: "mouse"',
        _input(bus="usb"),
        cause=CauseType.NOT_SUPPORTED,
    ),
    Case(
        78,
        "model",
        {f"{_DEVICES}.sound": {"name": "s", "model": "sb16"}},
        f"{_DEVICES}.Sound",
        'Unsupported value: "sb16"',
        {f"{_DEVICES}.sound": {"name": "s", "model": "ac97"}},
        cause=CauseType.NOT_SUPPORTED,
    ),
    Case(
        78,
        "name",
        {f"{_DEVICES}.sound": {"model": "ich9"}},
        f"{_DEVICES}.Sound",
        "needs a name",
        {f"{_DEVICES}.sound": {"name": "s"}},
        cause=CauseType.REQUIRED,
    ),
    Case(
        79,
        "no graphics",
        {f"{_DEVICES}.video": {"type": "vga"}, f"{_DEVICES}.autoattachGraphicsDevice": False},
        "P.video",
        "autoattachGraphicsDevice",
        {f"{_DEVICES}.video": {"type": "vga"}},
    ),
    Case(
        79,
        "type",
        {f"{_DEVICES}.video": {"type": "qxl"}},
        f"{_DEVICES}.video.type",
        'Unsupported value: "qxl"',
        {f"{_DEVICES}.video": {"type": "bochs"}},
        cause=CauseType.NOT_SUPPORTED,
        kinds=(VMI,),
    ),
    Case(
        79,
        "of another architecture",
        {f"{_DEVICES}.video": {"type": "vga"}, "P.architecture": "arm64"},
        f"{_DEVICES}.video.type",
        '"virtio"',
        {f"{_DEVICES}.video": {"type": "ramfb"}, "P.architecture": "arm64"},
        cause=CauseType.NOT_SUPPORTED,
        kinds=(VMI,),
    ),
    Case(
        80,
        "amd64",
        {f"{_DEVICES}.watchdog": {"name": "w", "diag288": {}}},
        f"{_DEVICES}.watchdog",
        "i6300esb",
        {f"{_DEVICES}.watchdog": {"name": "w", "i6300esb": {"action": "reset"}}},
        cause=CauseType.NOT_SUPPORTED,
        kinds=(VMI,),
    ),
    Case(
        80,
        "s390x",
        {f"{_DEVICES}.watchdog": {"name": "w", "i6300esb": {}}, "P.architecture": "s390x"},
        f"{_DEVICES}.watchdog",
        "diag288",
        {f"{_DEVICES}.watchdog": {"name": "w", "diag288": {}}, "P.architecture": "s390x"},
        cause=CauseType.NOT_SUPPORTED,
        kinds=(VMI,),
    ),
    _gated_there(
        "port ranges",
        "PortRangesSpec",
        {f"{_DEVICES}.interfaces[0].portRanges": [{"protocol": "TCP", "start": 80, "end": 90}]},
        f"{_DEVICES}.interfaces[0].name",
    ),
    _gated_there(
        "trusted domains",
        "WorkloadEncryptionTDX",
        {"P.domain.launchSecurity": {"tdx": {}}, "P.domain.firmware.bootloader": {"efi": {}}},
        "P.launchSecurity",
    ),
    _gated("vsock", "VSOCK", {f"{_DEVICES}.autoattachVSOCK": True}, f"{_DEVICES}.autoattachVSOCK"),
    _gated("host devices", "HostDevices", {f"{_DEVICES}.hostDevices": [{"name": "d", "deviceName": "x/y"}]}, f"{_DEVICES}.hostDevices"),
    _gated("metrics port", "DownwardMetrics", {f"{_DEVICES}.downwardMetrics": {}}, f"{_DEVICES}.downwardMetrics"),
    _gated("metrics disk", "DownwardMetrics", volume(downwardMetrics={}), "P.volumes[1]"),
    _gated(
        "overhead",
        "ReservedOverheadMemlock",
        {"P.domain.memory.reservedOverhead": {"addedOverhead": "1Gi"}},
        "P.domain.memory.reservedOverhead",
    ),
    _gated(
        "claimed device",
        "NetworkDevicesWithDRA",
        {
            **network({"resourceClaim": {"claimName": "c", "requestName": "r"}}, sriov={}),
            "P.resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
        },
        "P.networks[1].resourceClaim",
    ),
    _gated(
        "sidecar",
        "Sidecar",
        {"M.annotations": {"hooks.kubevirt.io/hookSidecars": "[]"}},
        "M.annotations",
        "sidecar feature gate is not enabled",
    ),
    _gated("ignition", "ExperimentalIgnitionSupport", {"M.annotations": {"kubevirt.io/ignitiondata": "{}"}}, "M.annotations"),
    Case(
        82,
        "policy",
        {"P.dnsPolicy": "Some"},
        "P.dnsPolicy",
        'Unsupported value: "Some"',
        {"P.dnsPolicy": "ClusterFirst"},
        cause=CauseType.NOT_SUPPORTED,
    ),
    Case(
        82,
        "None without config",
        {"P.dnsPolicy": "None"},
        "P.dnsPolicy",
        "dnsConfig must be given",
        {"P.dnsPolicy": "None", "P.dnsConfig": _DNS},
        cause=CauseType.REQUIRED,
    ),
    Case(
        82,
        "None without servers",
        {"P.dnsPolicy": "None", "P.dnsConfig": {}},
        "nameservers",
        "give at least one",
        {"P.dnsConfig": {}},
        cause=CauseType.REQUIRED,
    ),
    Case(
        82,
        "four servers",
        {"P.dnsConfig": {"nameservers": ["10.0.0.1"] * 4}},
        "nameservers",
        "at most 3",
        {"P.dnsConfig": {"nameservers": ["10.0.0.1"] * 3}},
        cause=CauseType.TOO_MANY,
    ),
    Case(
        82,
        "no address",
        {"P.dnsConfig": {"nameservers": ["dns.example.com"]}},
        "nameservers",
        "must be an IP address",
        {"P.dnsConfig": {"nameservers": ["fd00::1"]}},
    ),
    Case(
        82,
        "seven searches",
        {"P.dnsConfig": {"searches": [f"a{n}" for n in range(7)]}},
        "searchDomains",
        "at most 6",
        {"P.dnsConfig": {"searches": ["a"] * 6}},
        cause=CauseType.TOO_MANY,
    ),
    Case(
        82,
        "long searches",
        {"P.dnsConfig": {"searches": [f"{c * 60}.{c * 40}" for c in "abc"]}},
        "searchDomains",
        "no more than 256",
        {"P.dnsConfig": {"searches": ["a" * 60]}},
        cause=CauseType.TOO_LONG,
    ),
    Case(
        82,
        "bad search",
        {"P.dnsConfig": {"searches": ["a_b"]}},
        "searchDomains",
        "DNS-1123 subdomain",
        {"P.dnsConfig": {"searches": ["svc.cluster.local."]}},
    ),
    Case(
        82,
        "search with a dot at its end",
        {"P.dnsConfig": {"searches": ["svc.cluster.local."]}},
        "searchDomains",
        "DNS-1123 subdomain",
        {"P.dnsConfig": {"searches": ["svc.cluster.local"]}},
        settings={"target": "cluster"},
    ),
    Case(
        82,
        "option",
        {"P.dnsConfig": {"options": [{"value": "2"}]}},
        "options",
        "needs a name",
        {"P.dnsConfig": {"options": [{"name": "ndots", "value": "2"}]}},
        cause=CauseType.REQUIRED,
    ),
    *(
        Case(
            83,
            label,
            {"M.labels": {f"kubevirt.io/{label}": "x"}},
            "M.labels",
            "reserved",
            {"M.labels": {"app": "x", "kubevirt.io/size": "small"}},
            cause=CauseType.NOT_SUPPORTED,
        )
        for label in ("created-by", "nodeName", "migrationJobUID", "migrationTargetNodeName", "schedulable", "install-strategy")
    ),
    Case(
        84,
        "architecture",
        {"P.architecture": "riscv64"},
        "P.architecture",
        'Unsupported value: "riscv64"',
        {"P.architecture": "s390x"},
        cause=CauseType.NOT_SUPPORTED,
    ),
    Case(
        85, "invalid", {"P.serviceAccountName": "Robot!"}, "P.serviceAccountName", "DNS-1123 subdomain", {"P.serviceAccountName": "robot"}
    ),
    Case(
        85,
        "another one",
        {"P.serviceAccountName": "other", **_TOKEN},
        "P.serviceAccountName",
        "differs from the serviceAccount volume",
        {"P.serviceAccountName": "robot", **_TOKEN},
    ),
)
