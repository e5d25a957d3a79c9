"""What can go wrong with an image. `code` is for programs, the text for people; `fatal` tells whether trying again can help."""

from typing import Literal

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


class ImageError(PaddockError):
    """An image cannot be had. `registry` tells that a container image could not be pulled (ErrImagePull)."""

    fatal = False

    def __init__(self, code: Code, text: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(text, why=why, fix=fix)
        self.code = code
        self.registry = False

    @property
    def text(self) -> str:
        """The whole of it, for a condition."""
        return str(self)


class ImageUnavailable(ImageError, Transient):
    """Not now: the same request may succeed later."""


class ImageRefused(ImageError, Terminal):
    """The image, or what was said about it, has to change first."""

    fatal = True
