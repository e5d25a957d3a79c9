"""KubeVirt's feature gates that its admission asks for, release by release, and the ones that a cluster has on.

Until 1.8 a gate is on if the KubeVirt object names it. From 1.9 on, the ones that are beta are on unless it turns them off. A gate whose
feature is generally available is always on, whatever the object says.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from paddock.base import ownnames
from paddock.kubernetes.releases import NEWEST, OLDEST

RELEASES = range(OLDEST, NEWEST + 1)
_NEVER = 1 << 30
_VERSION = re.compile(r"v?1\.(\d+)\.")


class FeatureGate(msgspec.Struct, frozen=True):
    """The life of a gate."""

    # the first release whose admission asks for it; older ones do not have the feature, or not the gate
    since: int = OLDEST
    # on from this release on, unless it is turned off
    default: int = _NEVER
    # always on, or no longer asked for, from this release on
    final: int = _NEVER
    # an older gate that opens the same, and the first release without it
    before: tuple[str, int] = ("", 0)


_VIRTIOFS = ("ExperimentalVirtiofsSupport", 8)
GATES: Mapping[str, FeatureGate] = {
    "DeclarativeHotplugVolumes": FeatureGate(since=6, default=9),
    "DownwardMetrics": FeatureGate(),
    "EnableVirtioFsConfigVolumes": FeatureGate(since=5, final=8, before=_VIRTIOFS),
    "EnableVirtioFsStorageVolumes": FeatureGate(since=5, before=_VIRTIOFS),
    "ExperimentalIgnitionSupport": FeatureGate(),
    "GPU": FeatureGate(final=4),
    "GPUsWithDRA": FeatureGate(since=6, default=9),
    "HostDevices": FeatureGate(),
    "HostDevicesWithDRA": FeatureGate(since=8, default=9),
    "HostDisk": FeatureGate(),
    "MultiArchitecture": FeatureGate(final=8),
    "NUMA": FeatureGate(final=4),
    "NetworkBindingPlugins": FeatureGate(final=5),
    "NetworkDevicesWithDRA": FeatureGate(since=9),
    "PanicDevices": FeatureGate(since=6, final=9),
    "PasstBinding": FeatureGate(since=8, default=9),
    # From 1.9 on, a setting of the object goes before it (`_ReservationSetting`).
    "PersistentReservation": FeatureGate(),
    "PortRangesSpec": FeatureGate(since=9),
    "RebootPolicy": FeatureGate(since=8, default=9),
    "ReservedOverheadMemlock": FeatureGate(since=8),
    "Sidecar": FeatureGate(),
    "VMPersistentState": FeatureGate(final=6),
    "VSOCK": FeatureGate(),
    "VideoConfig": FeatureGate(since=6, final=9),
    "WorkloadEncryptionSEV": FeatureGate(default=9),
    "WorkloadEncryptionTDX": FeatureGate(since=7),
}


class ClusterGates(msgspec.Struct, frozen=True):
    """The gates of one installation: its release, and what its KubeVirt object turns on and off."""

    release: int = NEWEST
    on: frozenset[str] = frozenset()
    off: frozenset[str] = frozenset()
    # of nodes, where a machine does not say it
    architecture: str = "amd64"
    # of the KubeVirt object
    name: str = ""

    def has(self, gate: str) -> bool:
        """Return whether admission takes what needs a gate."""
        life = GATES[gate]
        older, until = life.before
        if self.release < life.since or self.release >= life.final or gate in self.on:
            return True
        if older in self.on and self.release < until:
            return True
        return self.release >= life.default and gate not in self.off

    def remedy(self, gate: str) -> str:
        """Return where to turn a gate on."""
        return f"add {gate} to spec.configuration.developerConfiguration.featureGates of {self.name or 'the KubeVirt object'}"


class _Name(msgspec.Struct):
    name: str = "kubevirt"
    namespace: str = "kubevirt"


class _Developer(msgspec.Struct):
    featureGates: list[str] | None = None
    disabledFeatureGates: list[str] | None = None


class _ReservationSetting(msgspec.Struct):
    enabled: bool | None = None


class _Configuration(msgspec.Struct):
    developerConfiguration: _Developer | None = None
    persistentReservationConfiguration: _ReservationSetting | None = None


class _Spec(msgspec.Struct):
    configuration: _Configuration | None = None


class _Status(msgspec.Struct):
    observedKubeVirtVersion: str = ""
    defaultArchitecture: str = ""


class _Installation(msgspec.Struct):
    metadata: _Name = msgspec.field(default_factory=_Name)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status | None = None


def of_installation(installation: Mapping[str, Any]) -> ClusterGates:
    """Return the gates of a KubeVirt object. A version that cannot be read, such as that of a build of one's own, is a new one."""
    found = msgspec.convert(installation, _Installation, strict=False)
    configuration, status = found.spec.configuration or _Configuration(), found.status or _Status()
    developer, reservations = configuration.developerConfiguration or _Developer(), configuration.persistentReservationConfiguration
    version = _VERSION.match(status.observedKubeVirtVersion)
    release = int(version[1]) if version is not None else NEWEST
    on = set(developer.featureGates or ())
    if release >= NEWEST and reservations is not None and reservations.enabled is not None:
        (on.add if reservations.enabled else on.discard)("PersistentReservation")
    return ClusterGates(
        release,
        frozenset(on),
        frozenset(developer.disabledFeatureGates or ()),
        status.defaultArchitecture or "amd64",
        f"KubeVirt {found.metadata.namespace}/{found.metadata.name}",
    )


def of_installations(installations: Iterable[Mapping[str, Any]]) -> ClusterGates | None:
    """Return the gates of a cluster. None if it shows no KubeVirt object, or several, of which nobody knows which one counts; and for a
    server of Paddock, which has features and not gates."""
    found = [each for each in installations if not _is_ours(each)]
    return of_installation(found[0]) if len(found) == 1 else None


def _is_ours(installation: Mapping[str, Any]) -> bool:
    return ownnames.COMMON_INSTANCETYPES.name in ((installation.get("metadata") or {}).get("annotations") or {})
