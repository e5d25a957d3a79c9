"""Between the versions of a kind whose objects somebody else converts (docs/design/0008-conversion.md)."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from paddock.base.jsondata import Data


class ConvertedForm(msgspec.Struct, frozen=True):
    """An object that is about to be written: as it is stored, and as the version of the request will show it.

    `served` is None where nobody has asked for it: a deletion works on the stored form.
    """

    stored: Data
    served: Data | None = None


class Conversion(Protocol):
    """Of one version. It may have to ask, so everything here can wait; whatever is known already comes without waiting."""

    @property
    def retired(self) -> bool:
        """True when the definition has changed since; objects converted under the old one may no longer be written."""

    def known(self, value: bytes) -> bytes | None:
        """Stored bytes in this version, if that is known."""

    async def serve(self, values: Sequence[bytes]) -> list[bytes]:
        """Stored bytes in this version, in as few questions as there can be; raises a `Failure`."""

    async def store(self, data: Data) -> ConvertedForm:
        """An object of this version on its way into the store; raises a `Failure`."""

    def remember(self, stored: bytes, served: bytes) -> None:
        """Bytes that were just written, in both forms: whoever watches need not ask again."""
