"""Sources of images. Secrets are in fields that no repr shows; two requests share a file when they have the same `canonical`."""

import hashlib
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlsplit, urlunsplit

from paddock.base.images.errors import ImageRefused

PullPolicy = Literal["", "Always", "IfNotPresent", "Never"]

DIGEST_SIZES = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}
# Addresses of images that the library has under a name: nothing is asked on the network. `.internal` is never a public name.
LIBRARY_URL = "https://images.paddock.internal/"
_LIBRARY_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True)
class ServerTrust:
    """The trust in a server, and our own certificate for it."""

    # PEM, added to the authorities that the host trusts
    ca: str = ""
    # PEM of a client certificate and its key
    certificate: str = ""
    key: str = field(default="", repr=False)
    verify: bool = True


@dataclass(frozen=True)
class Http:
    """A file at an http or https address."""

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    # whole headers, (name, value)
    headers: tuple[tuple[str, str], ...] = ()
    secret_headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    trust: ServerTrust = ServerTrust()
    # "sha256:..." over the bytes as they are sent
    checksum: str = ""
    # the name of what a signed URL leads to, when the URL itself is another each time
    stands_for: str = field(default="", kw_only=True)

    @property
    def name(self) -> str:
        """The name of the source."""
        return self.stands_for or canonical_url(self.url)

    @property
    def private(self) -> bool:
        """True if the request carries something that others may not have."""
        shown = self.username or self.password or self.secret_headers or self.trust.key
        return bool(shown or self.stands_for or urlsplit(self.url).username)


@dataclass(frozen=True)
class RegistryImage:
    """A disk in a container image: `docker://host/name:tag`, `oci-archive:///path/file.tar:tag`, or without a scheme."""

    reference: str
    # a file in the image; "" is the only file below /disk
    path: str = ""
    # as registries call it (amd64); "" is the host's
    architecture: str = ""
    policy: PullPolicy = ""
    username: str = ""
    password: str = field(default="", repr=False)
    # documents of the type .dockerconfigjson
    docker_configs: tuple[str, ...] = field(default=(), repr=False)
    trust: ServerTrust = ServerTrust()


@dataclass(frozen=True)
class File:
    """A file of this host. Only for askers that may read all files."""

    path: Path
    checksum: str = ""


@dataclass(frozen=True)
class Upload:
    """Bytes that somebody sends now."""

    chunks: AsyncIterator[bytes] = field(repr=False)
    size: int | None = None
    checksum: str = ""


Source = Http | RegistryImage | File | Upload


def header_line(line: str) -> tuple[str, str]:
    """`Name: value`, taken apart and checked."""
    name, found, value = line.partition(":")
    value = value.strip()
    if not found or not _HEADER_NAME.fullmatch(name.strip()) or any(ord(c) < 32 and c != "\t" for c in value):
        raise ImageRefused("Refused", "an extra header is not of the form Name: value", fix="write one header a line, such as X-Token: abc")
    return name.strip(), value


def checksum_of(text: str) -> tuple[str, str] | None:
    """The checksum of a source, checked; None if it has none."""
    return read_checksum(text) if text else None


def read_checksum(text: str) -> tuple[str, str]:
    """`algorithm:hex`, checked; the length of a bare hex string decides."""
    algorithm, found, value = text.strip().partition(":")
    if not found:
        value = algorithm
        algorithm = next((name for name, size in DIGEST_SIZES.items() if size == len(value)), "")
    algorithm, value = algorithm.strip().lower(), value.strip().lower()
    if DIGEST_SIZES.get(algorithm) != len(value) or not re.fullmatch(r"[0-9a-f]+", value):
        raise ImageRefused(
            "Checksum",
            "the checksum of the source cannot be read",
            fix="write algorithm:hex with md5, sha1, sha256 or sha512, such as sha256:9f86d0...",
        )
    return algorithm, value


def canonical_url(url: str) -> str:
    """One spelling for one address: no user, no fragment, the host in lower case, no port that is the scheme's own."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ImageRefused("Refused", f"{safe_url(url)} is not a URL", why=str(error)) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ImageRefused("Refused", f"{safe_url(url)} is not a URL of the scheme http or https")
    if any(ord(c) <= 32 or ord(c) == 127 for c in url):
        raise ImageRefused("Refused", f"{safe_url(url)} contains a space or control character", fix="write it as %20")
    host = parts.hostname.lower()
    host = f"[{host}]" if ":" in host else host
    if port is not None and port != {"http": 80, "https": 443}[parts.scheme]:
        host = f"{host}:{port}"
    safe = "%/:=&?~#+!$,;'@()*[]"
    return urlunsplit((parts.scheme, host, quote(parts.path, safe=safe) or "/", quote(parts.query, safe=safe), ""))


def library_url(name: str) -> str:
    """Return the address of an image that the library has under a name."""
    if not _LIBRARY_NAME.fullmatch(name):
        raise ImageRefused("Refused", f'"{name}" cannot be the name of an image', fix="use a-z, 0-9, dots and dashes, at most 63")
    return LIBRARY_URL + name


def library_name(url: str) -> str:
    """Return the name of an image in the library that an address means; empty for other addresses."""
    whole = canonical_url(url)
    return whole.removeprefix(LIBRARY_URL) if whole.startswith(LIBRARY_URL) else ""


def mirrored(url: str, mirrors: Mapping[str, str]) -> str:
    """Return the address of a mirror for this one, by the longest beginning that matches; empty without a mirror."""
    whole = canonical_url(url)
    for prefix in sorted(mirrors, key=len, reverse=True):
        start = canonical_url(prefix)
        # https://images.example stands for that host, and not for images.example.org.
        if whole == start or whole.startswith(f"{start.rstrip('/')}/"):
            return mirrors[prefix].rstrip("/") + whole[len(start.rstrip("/")) :]
    return ""


def safe_url(url: str) -> str:
    """The URL as messages show it: without a password, without a query (where signatures are), and printable."""
    text = re.sub(r"//[^/@\s]*@", "//", url).partition("?")[0]
    return "".join(c if c.isprintable() else "?" for c in text)[:500]


def key_of(*parts: str) -> str:
    """A short name for what these parts say together."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]
