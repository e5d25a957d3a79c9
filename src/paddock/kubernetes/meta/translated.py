"""The result of a translation: the value and everything that did not fit into it."""

from typing import Any, Generic, TypeVar

import msgspec

from paddock.kubernetes.schema.finding import Path, format_path

T = TypeVar("T")


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """A value of the source that the target cannot say. Never dropped silently: `instead` tells what happens now."""

    # the object of the source: Kind/name
    of: str
    path: Path
    value: Any
    why: str
    instead: str
    # Nobody reads the field, and nobody has given a reason why not.
    unread: bool = False

    @property
    def field(self) -> str:
        """The path as Kubernetes writes it."""
        return format_path(self.path)


class Translated(msgspec.Struct, Generic[T], frozen=True):
    """A translated value with its losses."""

    value: T
    losses: tuple[Loss, ...] = ()


class LossCollector:
    """Collects the losses of one source object while it is translated."""

    def __init__(self, of: str) -> None:
        self.of = of
        self._losses: list[Loss] = []

    def lose(self, path: Path, value: Any, why: str, instead: str) -> None:
        """Note a value that the target cannot say."""
        self.note(Loss(of=self.of, path=path, value=value, why=why, instead=instead))

    def note(self, loss: Loss) -> None:
        self._losses.append(loss)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Everything noted so far, in order."""
        return tuple(self._losses)
