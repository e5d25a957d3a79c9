"""The size of the disk behind a claim (docs/spec/kubevirt.md 5.4). Pure.

A DataVolume with `storage` asks for the size that a guest should see, and its claim for a little more, so that clients that know CDI's
filesystem overhead find what they expect. Here a guest gets exactly the requested size.
"""

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Protocol

from paddock.base import quantity
from paddock.kubernetes.core import persistentvolumeclaim
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim, storage_request

MIB = 1 << 20
OVERHEAD = "0.06"
GUEST_SIZE = persistentvolumeclaim.GUEST_SIZE


def inflated(size: int, overhead: str) -> int:
    """Return the request of a claim that gives a guest this size."""
    whole = -(-size // MIB) * MIB
    return int((whole * (1 + Decimal(overhead))).to_integral_value(ROUND_CEILING))


def usable(size: int, overhead: str) -> int:
    """Return the size that CDI would give a guest of a claim of this size."""
    return int(size / (1 + Decimal(overhead))) // MIB * MIB


class ConfiguredOverhead(Protocol):
    """The part of volumes that CDI's configuration sets aside."""

    @property
    def global_(self) -> str | None: ...

    @property
    def storageClass(self) -> dict[str, str] | None: ...


def overhead_of(configured: ConfiguredOverhead | None, storage_class: str) -> str:
    """The part that is set aside in a class."""
    if configured is None:
        return OVERHEAD
    return (configured.storageClass or {}).get(storage_class) or configured.global_ or OVERHEAD


def guest_size_note(guest: int, request: int) -> dict[str, str]:
    """The annotation that remembers what was asked for, as long as the claim is not made larger by others."""
    return {} if request == guest else {GUEST_SIZE: f"{guest}/{request}"}


def request_of(claim: PersistentVolumeClaim) -> int:
    """Return the request of a claim, in bytes."""
    asked = storage_request(claim.spec)
    return 0 if asked is None else quantity.whole(asked)


def guest_size(claim: PersistentVolumeClaim) -> int:
    """Return the guest's size of a claim, in bytes."""
    return remembered(claim.metadata.annotations, request_of(claim))


def remembered(annotations: Mapping[str, str] | None, request: int) -> int:
    """Return the guest's size that a claim with this request remembers, in bytes; the request if it remembers none."""
    guest, _, at = (annotations or {}).get(GUEST_SIZE, "").partition("/")
    return int(guest) if guest.isdecimal() and at.isdecimal() and int(at) == request else request


def needs_growth(claim: PersistentVolumeClaim) -> bool:
    """Return whether a claim asks for more than the capacity in its status."""
    has = (claim.status.capacity or {}).get("storage") if claim.status else None
    return has is not None and request_of(claim) > quantity.whole(has)
