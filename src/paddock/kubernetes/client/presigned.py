"""An address in an S3 bucket with a signature in it (AWS signature, version 4), so that plain http can use it, also in parts."""

import hashlib
import hmac
import time
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

import msgspec

# The longest there is.
_SECONDS = 7 * 86400
_SAFE = "-_.~"


class S3Keys(msgspec.Struct, frozen=True, kw_only=True):
    """An access key. Without a region, that of Amazon's name or us-east-1 counts."""

    key: str
    secret: str
    token: str = ""
    region: str = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<hidden>)"


def url(address: str, key: str, secret: str, now: float, seconds: int = _SECONDS) -> str:
    """The address, signed for fetching it for some time from now."""
    return signed("GET", address, S3Keys(key=key, secret=secret), now, seconds)


def signed(method: str, address: str, keys: S3Keys, now: float, seconds: int = _SECONDS) -> str:
    """The address, signed for one method for some time from now."""
    parts = urlsplit(address)
    host, path = parts.netloc.rpartition("@")[2], quote(parts.path or "/", safe=_SAFE + "/%")
    at = time.gmtime(now)
    day, moment = time.strftime("%Y%m%d", at), time.strftime("%Y%m%dT%H%M%SZ", at)
    scope = f"{day}/{keys.region or _region(host)}/s3/aws4_request"
    fields = [
        *parse_qsl(parts.query, keep_blank_values=True),
        ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
        ("X-Amz-Credential", f"{keys.key}/{scope}"),
        ("X-Amz-Date", moment),
        ("X-Amz-Expires", str(seconds)),
        ("X-Amz-SignedHeaders", "host"),
        *([("X-Amz-Security-Token", keys.token)] if keys.token else []),
    ]
    query = "&".join(f"{quote(name, safe=_SAFE)}={quote(value, safe=_SAFE)}" for name, value in sorted(fields))
    request = f"{method}\n{path}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    sign = f"AWS4{keys.secret}".encode()
    for word in (*scope.split("/"), text):
        sign = hmac.digest(sign, word.encode(), "sha256")
    return urlunsplit((parts.scheme, parts.netloc, path, f"{query}&X-Amz-Signature={sign.hex()}", ""))


def _region(host: str) -> str:
    """The region that a name of Amazon's says; other servers take any."""
    words = host.partition(":")[0].split(".")
    if words[-2:] == ["amazonaws", "com"] and len(words) >= 4 and not words[-3].startswith("s3"):
        return words[-3]
    return "us-east-1"
