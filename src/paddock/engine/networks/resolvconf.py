"""The host's own resolver: /etc/resolv.conf. Read-only."""

import ipaddress
from pathlib import Path

_RESOLVERS = Path("/etc/resolv.conf")


def nameservers(text: str | None = None) -> tuple[str, ...]:
    """The host's resolvers, three at most as everywhere."""
    found: list[str] = []
    for line in (read() if text is None else text).splitlines():
        words = line.split()
        if len(words) < 2 or words[0] != "nameserver":
            continue
        try:
            found.append(str(ipaddress.ip_address(words[1])))
        except ValueError:
            continue
    return tuple(found[:3])


def read() -> str:
    """The file; empty when there is none."""
    try:
        return _RESOLVERS.read_text(errors="replace")
    except OSError:
        return ""
