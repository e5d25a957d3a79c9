"""The version of a record on disk, looked at before the rest: a record of another Paddock may have other members, and is whole.

Nobody is advised to restore or remove such a record, as a damaged one: the Paddock that wrote it still reads it.
"""

import msgspec

FIX = "use the Paddock that wrote it, or a newer one"


class _Versioned(msgspec.Struct):
    version: int = 1


_HEADS = msgspec.json.Decoder(_Versioned)


def strange(record: bytes, *known: int) -> str:
    """Return why this Paddock does not read a record; "" for one of a version it knows, and for what is no record at all."""
    try:
        found = _HEADS.decode(record).version
    except ValueError:
        return ""
    return "" if found in known else f"it is of version {found}, and this Paddock knows version {' and '.join(map(str, known))}"
