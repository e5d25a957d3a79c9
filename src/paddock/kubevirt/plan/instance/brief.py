"""As much of a running machine as is read at every change of it."""

import msgspec

from paddock.kubevirt.kinds.volumes import Volume
from paddock.kubevirt.plan.instance.phases import FINAL
from paddock.kubevirt.plan.instance.volumes import claim_of

# The index of instances by their claims, as all who read them call it.
BY_CLAIM = "claims of instances"


class _Spec(msgspec.Struct):
    volumes: list[Volume] | None = None


class _Claim(msgspec.Struct):
    claimName: str | None = None


class _Moved(msgspec.Struct):
    sourcePVCInfo: _Claim | None = None


class _Status(msgspec.Struct):
    phase: str | None = None
    migratedVolumes: list[_Moved] | None = None


class InstanceSummary(msgspec.Struct):
    """A VirtualMachineInstance, in short."""

    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def ended(self) -> bool:
        """True if it uses no resources any more."""
        return self.status.phase in FINAL

    @property
    def claims(self) -> tuple[str, ...]:
        """The names of the claims that it has."""
        found = [claim_of(volume) for volume in self.spec.volumes or ()]
        # A disk that moves to another claim is still on this one.
        moved = [each.sourcePVCInfo.claimName for each in self.status.migratedVolumes or () if each.sourcePVCInfo is not None]
        found += [name for name in moved if name]
        return tuple(dict.fromkeys(name for name in found if name))


_BRIEF = msgspec.json.Decoder(InstanceSummary)


def brief(raw: bytes) -> InstanceSummary:
    """An instance in short, from its JSON."""
    return _BRIEF.decode(raw)


def claim_places(namespace: str, raw: bytes) -> list[str]:
    """Return the index keys of an instance: its claims as `namespace/name`."""
    return [f"{namespace}/{name}" for name in brief(raw).claims]
