"""The remains of an image at Providers when it goes."""

from collections.abc import Iterator

import msgspec

from paddock.dialects.virtrigaud.kinds.shared import StatusCondition
from paddock.dialects.virtrigaud.kinds.vmimage import ProviderImage, VMImage, VMImageStatus

# Messages of entries that ImagePrepare has made; what somebody else made available has another one, or none.
PREPARING, PREPARED = "being prepared", "prepared by the provider"


def prepared_here(image: VMImage) -> Iterator[tuple[str, ProviderImage]]:
    """Yield the images that Providers have prepared, by the Provider's name in the status."""
    entries = (image.status.providerStatus if image.status is not None else None) or {}
    return ((name, each) for name, each in sorted(entries.items()) if is_prepared_here(each))


def is_prepared_here(entry: ProviderImage) -> bool:
    """Return whether ImagePrepare has answered for an entry."""
    named = bool(entry.id or entry.path)
    return named and (not entry.available or (entry.message or "").startswith((PREPARING, PREPARED)))


def preparing(problem: str) -> str:
    """Return the message of an image that is being prepared; `problem` is what the last attempt ended with."""
    return f"{PREPARING}; the last attempt failed: {problem}" if problem else PREPARING


def last_problem(entry: ProviderImage | None) -> str:
    """Return what the message of an image that is being prepared says of the last attempt."""
    message = (entry.message if entry is not None else None) or ""
    return message.removeprefix(PREPARING) if message.startswith(PREPARING) else ""


def place(name: str, namespace: str) -> tuple[str, str]:
    """The namespace and the name of a Provider that a status names."""
    first, slash, second = name.partition("/")
    return (first, second) if slash else (namespace, first)


def named(entry: ProviderImage) -> str:
    """Return the words by which people find a prepared image."""
    return entry.id or entry.path or "without a name"


def leaving_status(before: VMImageStatus, conditions: list[StatusCondition], message: str) -> VMImageStatus:
    """The status of an image that goes."""
    return msgspec.structs.replace(before, ready=False, message=message, conditions=conditions)
