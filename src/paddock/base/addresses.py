"""Addresses as users write them."""

import re

_LEADING_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")


def without_zeros(text: str) -> str:
    """Return an IPv4 address or network without leading zeros: `10.10.010.0/24` is `10.10.10.0/24`, as in KubeVirt. Others stay."""
    return text if ":" in text else _LEADING_ZEROS.sub("", text)
