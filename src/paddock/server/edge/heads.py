"""The fields of a request's head, merged and checked. Pure."""

from collections.abc import Iterable

from paddock.server.edge import refusals

Headers = dict[str, str]
_ONCE = frozenset(("content-length", "host", "transfer-encoding", "authorization"))


def merged(fields: Iterable[tuple[bytes, bytes]], largest: int) -> tuple[Headers, dict[str, list[str]]]:
    """Return header fields by name, and the values of those that came more than once. Raises `HttpRefusal`."""
    headers: Headers = {}
    repeated: dict[str, list[str]] = {}
    size = 0
    for name, value in fields:
        size += len(name) + len(value)
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        if key in headers:
            if key in _ONCE:
                # Two answers to one question are how requests are smuggled past a proxy.
                raise refusals.malformed(f"repeated header {key}")
            repeated.setdefault(key, [headers[key]]).append(text)
            text = f"{headers[key]}, {text}"
        headers[key] = text
    if size > largest:
        raise refusals.large_head()
    if "transfer-encoding" in headers and "content-length" in headers:
        raise refusals.malformed("both content-length and transfer-encoding")
    return headers, repeated


def expects(headers: Headers) -> bool:
    """Return whether the client waits for 100 Continue before it sends the body."""
    return headers.get("expect", "").lower() == "100-continue"
