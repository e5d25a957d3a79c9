"""The account of each value of a source object's spec.

Much of it is read only to decide whether another value counts, so that reading alone proves nothing: the code that maps a field says so
(`took`), or gives the reason why it does not fit (`lose`). A value without either is a loss at the end.
"""

from functools import cache
from typing import Any

from paddock.kubernetes.meta.fieldrecord import FieldRecord, Reason, Reasons
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.finding import Path

OTHERWISE: Reason = ("KubeVirt has no field for it", "the machine is made without it")
__all__ = ["Account", "Reason", "Reasons"]


class Account(FieldRecord[Resource]):
    """The values of the spec of one object. Paths begin below the spec."""

    def __init__(self, resource: Resource, reasons: Reasons) -> None:
        super().__init__(resource, _of_spec(reasons), OTHERWISE)

    def took(self, *path: str | int) -> None:
        """The value is in the result. Members of an object are taken one by one."""
        self.take("spec", *path)

    def took_whole(self, *path: str | int) -> None:
        """The value is in the result with everything below it, or another loss speaks for it."""
        self.take_whole("spec", *path)

    def lose(self, path: Path, value: Any, why: str, instead: str) -> None:
        """The value is not in the result as it is. Reported once, however often it is read."""
        whole = ("spec", *path)
        if not self.is_lost(whole):
            super().lose(whole, value, why, instead)


@cache
def _of_spec(reasons: Reasons) -> Reasons:
    return tuple((("spec", *start), reason) for start, reason in reasons)
