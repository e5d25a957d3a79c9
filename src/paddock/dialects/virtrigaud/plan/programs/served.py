"""Providers that somebody else serves: the annotation with their address."""

import re

import msgspec

from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.plan import marks

_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)):(?P<port>[0-9]{1,5})")


class ServedAddress(msgspec.Struct, frozen=True):
    """The address of a served provider. With a problem, the annotation is no address."""

    host: str = ""
    port: int = 0
    problem: str = ""


def address(provider: Provider) -> ServedAddress | None:
    """The address of a Provider that is served already; None: Paddock runs its program."""
    given = (provider.metadata.annotations or {}).get(marks.PROVIDER_ADDRESS)
    if given is None:
        return None
    found = _ADDRESS.fullmatch(given.strip())
    if found is None or not 0 < int(found["port"]) < 65536:
        return ServedAddress(problem=f"the annotation {marks.PROVIDER_ADDRESS} has to be HOST:PORT or [ADDRESS]:PORT")
    return ServedAddress(found["six"] or found["host"], int(found["port"]))
