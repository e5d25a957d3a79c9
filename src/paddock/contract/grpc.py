"""What gRPC puts into HTTP/2: headers, the frame around a message, timeouts, statuses. No I/O.

Unary calls only, and no compression: a provider's messages are small, and what both sides never unpack cannot be made to grow.
"""

import re
from typing import NoReturn
from urllib.parse import quote, unquote_to_bytes

from paddock.base import reasons
from paddock.base.errors import Terminal
from paddock.contract.errors import ErrorKind, StatusCode
from paddock.contract.http2 import Headers, Http2Stream

CONTENT_TYPE = "application/grpc"
KIND_HEADER = "paddock-error-kind"
RETRY_HEADER = "paddock-retry-after"
REASON_HEADER = "paddock-reason"
_PREFIX = 5
_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])\Z")
_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
# What an answer that is not gRPC's means (the table of gRPC's HTTP mapping).
_HTTP = {
    "400": StatusCode.INTERNAL,
    "401": StatusCode.UNAUTHENTICATED,
    "403": StatusCode.PERMISSION_DENIED,
    "404": StatusCode.UNIMPLEMENTED,
    "429": StatusCode.UNAVAILABLE,
    "502": StatusCode.UNAVAILABLE,
    "503": StatusCode.UNAVAILABLE,
    "504": StatusCode.UNAVAILABLE,
}


class StatusError(Terminal):
    """A call that ended with a status other than OK. The text is the other side's, or for it. `sent` is false if it never went out."""

    def __init__(
        self,
        code: StatusCode,
        text: str,
        *,
        kind: ErrorKind | None = None,
        retry_after: float | None = None,
        sent: bool = True,
        reason: str = "",
    ) -> None:
        super().__init__(text or code.name)
        self.code = code
        self.text = text
        self.kind = kind
        self.retry_after = retry_after
        self.sent = sent
        self.reason_code = reason


def framed(message: bytes) -> bytes:
    """The body that carries a message."""
    return b"\0" + len(message).to_bytes(4, "big") + message


def unframed(body: bytes | bytearray) -> bytes:
    """The message of a body; raises `StatusError`."""
    if len(body) < _PREFIX:
        raise StatusError(StatusCode.INTERNAL, "the body holds no message")
    if body[0]:
        raise StatusError(StatusCode.UNIMPLEMENTED, "compressed messages are not supported")
    size = int.from_bytes(body[1:_PREFIX], "big")
    if len(body) != size + _PREFIX:
        raise StatusError(StatusCode.INTERNAL, "the body does not hold exactly one message")
    return bytes(body[_PREFIX:])


def request_headers(path: str, authority: str, timeout: float, *, scheme: str) -> Headers:
    """The headers of a call."""
    return [
        (":method", "POST"),
        (":scheme", scheme),
        (":path", path),
        (":authority", authority),
        ("te", "trailers"),
        ("content-type", CONTENT_TYPE),
        ("grpc-timeout", format_timeout(timeout)),
        ("grpc-accept-encoding", "identity"),
        ("user-agent", "grpc-python-paddock"),
    ]


def response_headers() -> Headers:
    """The headers before a message."""
    return [(":status", "200"), ("content-type", CONTENT_TYPE), ("grpc-accept-encoding", "identity")]


def status_trailers(error: StatusError | None) -> Headers:
    """The end of a call."""
    if error is None:
        return [("grpc-status", "0")]
    found = [("grpc-status", str(int(error.code))), ("grpc-message", quote(error.text, safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"))]
    if error.kind is not None:
        found.append((KIND_HEADER, error.kind.value))
    if error.retry_after is not None:
        found.append((RETRY_HEADER, f"{error.retry_after:.3f}"))
    if error.reason_code:
        found.append((REASON_HEADER, error.reason_code))
    return found


def check_request(stream: Http2Stream) -> None:
    """Raise `StatusError` if a request is not one of gRPC's."""
    headers = stream.headers
    if headers.get(":method") != "POST" or not is_grpc(headers.get("content-type", "")):
        raise StatusError(StatusCode.INTERNAL, "this is a gRPC service")
    if headers.get("grpc-encoding", "identity") != "identity":
        raise StatusError(StatusCode.UNIMPLEMENTED, "compressed messages are not supported")


def is_grpc(content_type: str) -> bool:
    """Return true for the content types of gRPC with protobuf."""
    base = content_type.partition(";")[0].strip().lower()
    return base in (CONTENT_TYPE, f"{CONTENT_TYPE}+proto")


def message_of(stream: Http2Stream) -> bytes:
    """The message of an answer; raises `StatusError` for any status but OK."""
    headers, ends = stream.headers, stream.trailers or stream.headers
    if "grpc-status" not in ends:
        _refuse_plain(headers)
    code = _code(ends["grpc-status"])
    if code is StatusCode.OK:
        return unframed(stream.body)
    text = unquote_to_bytes(ends.get("grpc-message", "")).decode("utf-8", "replace")
    kind, reason = _kind(ends.get(KIND_HEADER)), known_reason(ends.get(REASON_HEADER, ""))
    raise StatusError(code, text, kind=kind, retry_after=_seconds(ends.get(RETRY_HEADER)), reason=reason)


def _refuse_plain(headers: dict[str, str]) -> NoReturn:
    status = headers.get(":status", "")
    if status != "200" or not is_grpc(headers.get("content-type", "")):
        raise StatusError(
            _HTTP.get(status, StatusCode.UNKNOWN), f"it answered with HTTP {status[:3]}, not with gRPC", reason=_http_reason(status)
        )
    raise StatusError(StatusCode.INTERNAL, "the answer has no status")


def _http_reason(status: str) -> str:
    """Return the reason code of an answer that is not gRPC's: a proxy speaks for a program that is away, the rest is another one."""
    return "" if _HTTP.get(status) is StatusCode.UNAVAILABLE else reasons.PROVIDER_OUTDATED


def _code(text: str) -> StatusCode:
    try:
        return StatusCode(int(text))
    except ValueError:
        return StatusCode.UNKNOWN


def _kind(text: str | None) -> ErrorKind | None:
    return next((kind for kind in ErrorKind if kind.value == text), None)


def known_reason(text: str) -> str:
    """Return a reason code of the other side; empty for a word that is none, because programs decide by it."""
    return text if text in reasons.codes() else ""


def _seconds(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        return None
    return float(text)


def format_timeout(seconds: float) -> str:
    """The header of a deadline, of at most eight digits."""
    for unit, size in (("m", 1e-3), ("S", 1.0)):
        if (count := max(0, int(seconds / size))) < 10**8:
            return f"{count}{unit}"
    return "99999999S"


def parse_timeout(text: str | None) -> float | None:
    """The seconds of a deadline, None without one; raises `StatusError`."""
    if text is None:
        return None
    if (found := _TIMEOUT.match(text)) is None:
        raise StatusError(StatusCode.INTERNAL, "the header grpc-timeout is malformed")
    return int(found[1]) * _UNITS[found[2]]
