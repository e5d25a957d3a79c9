"""The errors of images. `code` is for programs, the text for people; `fatal` tells whether trying again can help."""

from collections.abc import Mapping
from typing import Literal

from paddock.base import reasons
from paddock.base.errors import PaddockError, Terminal, Transient

Code = Literal[
    "Unreachable",  # no connection, or it broke, or the server said that it is not able
    "TimedOut",
    "TooSlow",  # it sends, but so little that the import would hold its slot for ever
    "Certificate",
    "Denied",  # the address is one that images may not come from
    "NotAuthorized",
    "NotFound",
    "Refused",  # the server refused otherwise
    "Checksum",
    "NotAnImage",
    "Truncated",
    "Unsupported",
    "Unsafe",  # it refers to files outside itself, or hides what it is
    "Encrypted",
    "TooLarge",
    "Limits",  # a program that looked at it went over its limits
    "NoSpace",
    "Storage",  # our own disk failed
    "ErrImageNeverPull",
    "Cancelled",
]


_REASONS: Mapping[Code, str] = {
    "Unreachable": reasons.IMAGE_UNREACHABLE,
    "TimedOut": reasons.IMAGE_UNREACHABLE,
    "TooSlow": reasons.IMAGE_TOO_SLOW,
    "Certificate": reasons.IMAGE_CERTIFICATE,
    "Denied": reasons.IMAGE_DENIED,
    "NotAuthorized": reasons.IMAGE_NOT_AUTHORIZED,
    "NotFound": reasons.IMAGE_NOT_FOUND,
    "Refused": reasons.IMAGE_SOURCE_REFUSED,
    "Checksum": reasons.IMAGE_CHECKSUM,
    "NotAnImage": reasons.IMAGE_MALFORMED,
    "Truncated": reasons.IMAGE_MALFORMED,
    "Unsupported": reasons.IMAGE_UNSUPPORTED,
    "Unsafe": reasons.IMAGE_UNSAFE,
    "Encrypted": reasons.IMAGE_ENCRYPTED,
    "TooLarge": reasons.IMAGE_TOO_LARGE,
    "Limits": reasons.IMAGE_LIMIT,
    "NoSpace": reasons.HOST_DISK_FULL,
    "Storage": reasons.HOST_DISK_FAILED,
    "ErrImageNeverPull": reasons.IMAGE_NEVER_PULLED,
    "Cancelled": reasons.IMAGE_CANCELLED,
}


class ImageError(PaddockError):
    """An image cannot be had. `registry` tells that a container image could not be pulled (ErrImagePull).

    `reason` is the code for conditions where `code`, which decides about another attempt, covers several causes.
    """

    fatal = False

    def __init__(self, code: Code, text: str, *, why: str = "", fix: str = "", reason: str = "") -> None:
        super().__init__(text, why=why, fix=fix)
        self.code = code
        self.reason_code = reason or _REASONS[code]
        self.registry = False

    @property
    def text(self) -> str:
        """The whole of it, for a condition."""
        return str(self)

    def of_pull(self, reference: object) -> None:
        """Become the error of the pull of a container image, and name the image."""
        self.what = f"{_pull(reference)}{self.what}"
        self.registry = True

    def without_pull(self, reference: object) -> str:
        """Return the text without the image, if it is that of its pull."""
        return self.text.removeprefix(_pull(reference))


def _pull(reference: object) -> str:
    return f"failed to pull image {reference}: "


class ImageUnavailable(ImageError, Transient):
    """Not now: the same request may succeed later."""


class ImageRefused(ImageError, Terminal):
    """The image, or its description, has to change first."""

    fatal = True
