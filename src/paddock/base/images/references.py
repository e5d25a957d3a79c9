"""Names of container images, and who may be asked for them with what."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from paddock.base.images.errors import ImageRefused

_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_HOST = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9a-fA-F:]+\])(?::\d{1,5})?"
)


@dataclass(frozen=True)
class RegistryReference:
    """`registry/repository:tag@digest`, with the defaults filled in."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.registry}/{self.repository}" + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")

    @property
    def version(self) -> str:
        """The name of its manifest: the digest, else the tag."""
        return self.digest or self.tag

    @property
    def moves(self) -> bool:
        """True if it is expected to name other images with time, so that the default pull policy is Always."""
        return not self.digest and self.tag == "latest"


@dataclass(frozen=True)
class RegistryEndpoint:
    """A registry as it is asked: `base` is a URL, `prefix` is put before repositories."""

    base: str
    repository: str
    host: str


def parse(text: str) -> RegistryReference:
    """Read a reference as container runtimes do."""
    plain = text.removeprefix("docker://").strip()
    name, _, digest = plain.partition("@")
    head, slash, rest = name.partition("/")
    if not slash or not ("." in head or ":" in head or head == "localhost"):
        head, rest = "docker.io", name
    if head in ("index.docker.io", "registry-1.docker.io"):
        head = "docker.io"
    repository, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        repository, tag = rest, ""
    if head == "docker.io" and "/" not in repository:
        repository = f"library/{repository}"
    if not _HOST.fullmatch(head) or not _REPOSITORY.fullmatch(repository) or len(repository) > 255:
        raise _unreadable(text)
    if (tag and not _TAG.fullmatch(tag)) or ("@" in plain and not _DIGEST.fullmatch(digest)):
        raise _unreadable(text)
    return RegistryReference(head, repository, tag or ("" if digest else "latest"), digest)


def _unreadable(text: str) -> ImageRefused:
    shown = "".join(c if c.isprintable() else "?" for c in text)[:300]
    error = ImageRefused("Refused", f"{shown} is no name of a container image", fix="write docker://registry/name:tag")
    error.registry = True
    return error


def endpoints(reference: RegistryReference, mirrors: Mapping[str, tuple[str, ...]], insecure: frozenset[str]) -> list[RegistryEndpoint]:
    """Return the registries to ask, in this order: the mirrors of the longest matching prefix, then the registry itself."""
    whole = f"{reference.registry}/{reference.repository}"
    found: list[RegistryEndpoint] = []
    for prefix in sorted(mirrors, key=len, reverse=True):
        if whole == prefix or whole.startswith(prefix.rstrip("/") + "/"):
            rest = whole[len(prefix.rstrip("/")) :].lstrip("/")
            found = [_mirror(mirror, rest, insecure) for mirror in mirrors[prefix]]
            break
    host = "registry-1.docker.io" if reference.registry == "docker.io" else reference.registry
    scheme = "http" if reference.registry in insecure else "https"
    return [*found, RegistryEndpoint(f"{scheme}://{host}", reference.repository, reference.registry)]


def _mirror(text: str, rest: str, insecure: frozenset[str]) -> RegistryEndpoint:
    scheme, found, place = text.rpartition("://")
    host, _, prefix = place.strip("/").partition("/")
    if not found:
        scheme = "http" if host in insecure else "https"
    return RegistryEndpoint(f"{scheme}://{host}", f"{prefix}/{rest}" if prefix else rest, host)


@dataclass(frozen=True)
class RegistryCredentials:
    """A user, or a token that stands for one."""

    username: str = ""
    password: str = ""
    token: str = ""

    def __bool__(self) -> bool:
        return bool(self.username or self.password or self.token)


def credentials(configs: tuple[str, ...], host: str, repository: str) -> RegistryCredentials:
    """Return the credentials of pull secrets for a repository; the longest matching name wins."""
    best, longest = RegistryCredentials(), -1
    for config in configs:
        try:
            entries = json.loads(config)
            entries = entries.get("auths", entries)
            items = list(entries.items())
        except (ValueError, AttributeError):
            continue
        for key, entry in items:
            length = _match(str(key), host, repository)
            if length > longest and isinstance(entry, dict) and (found := _credentials(entry)):
                best, longest = found, length
    return best


def _match(key: str, host: str, repository: str) -> int:
    key = re.sub(r"^https?://", "", key).rstrip("/")
    key = re.sub(r"/v[12]$", "", key)
    if key in ("index.docker.io", "registry-1.docker.io"):
        key = "docker.io"
    name, _, prefix = key.partition("/")
    if name != ("docker.io" if host == "registry-1.docker.io" else host):
        return -1
    if prefix and repository != prefix and not repository.startswith(f"{prefix}/"):
        return -1
    return len(prefix)


def _credentials(entry: dict[str, object]) -> RegistryCredentials:
    token = entry.get("registrytoken")
    if isinstance(token, str) and token:
        return RegistryCredentials(token=token)
    username, password = str(entry.get("username") or ""), str(entry.get("password") or "")
    packed = entry.get("auth")
    if not username and isinstance(packed, str):
        try:
            username, _, password = base64.b64decode(packed).decode().partition(":")
        except (binascii.Error, ValueError):
            return RegistryCredentials()
    return RegistryCredentials(username, password.rstrip("\0"))
