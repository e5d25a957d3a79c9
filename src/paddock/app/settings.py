"""What somebody decides about a server when they start it."""

from pathlib import Path

import msgspec

DEFAULT_PORT = 7443


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one start."""

    root: Path
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    # names and addresses the serving certificate is valid for besides the usual ones
    names: tuple[str, ...] = ()
    token_file: Path | None = None
    # controllers run too (`paddock up`), or the server alone (`paddock apiserver`)
    controllers: bool = True
    audit_level: str = "Metadata"
    # seconds that open requests get at the end
    drain_seconds: float = 10.0


def parse_listen(text: str) -> tuple[str, int]:
    """`ADDRESS`, `:PORT` or `ADDRESS:PORT`; IPv6 addresses with a port stand in brackets."""
    from paddock.base.errors import Terminal  # noqa: PLC0415 - only a wrong address needs it

    host, colon, port = text.rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        host, port = text, str(DEFAULT_PORT)
    if not port.isdecimal() or int(port) > 65535:
        raise Terminal(f"{text!r} is not an address to listen on", fix="write ADDRESS:PORT, such as 127.0.0.1:7443 or [::1]:7443")
    return host.strip("[]") or "127.0.0.1", int(port)
