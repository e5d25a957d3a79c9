"""Container registries by the distribution protocol (v2), and OCI archives: manifests and blobs, each held against its digest."""

import hashlib
import json
import platform
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from paddock.base import reasons
from paddock.base.images.errors import ImageError, ImageRefused
from paddock.base.images.http import DownloadRequest, DownloadResponse, RequestBody, WebClient, bad_status, basic
from paddock.base.images.references import RegistryCredentials, RegistryEndpoint, RegistryReference, credentials
from paddock.base.images.sources import RegistryImage, ServerTrust
from paddock.base.images.stopflag import StopFlag
from paddock.base.images.tar import Tar, TarEntry

_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
# What the distribution specification asks of every registry that has a limit: a smaller one refuses images that others take.
_LARGEST_MANIFEST = 4 << 20
_LONGEST_CHALLENGE = 4096
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
# Possessive, and only from the beginning of a word: a long one is read once.
_PARAMETER = re.compile(r'\b(\w++)="([^"]*+)"')
_MOST_LAYERS = 512
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "ppc64le": "ppc64le", "s390x": "s390x", "riscv64": "riscv64"}


def host_architecture() -> str:
    """This host's, as registries call it."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


@dataclass(frozen=True)
class RegistryLayer:
    """A blob of a manifest."""

    digest: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """One image of one architecture."""

    digest: str
    layers: tuple[RegistryLayer, ...]


class RegistrySession(Protocol):
    """A source of manifests and blobs."""

    def manifest(self, version: str) -> tuple[bytes, str]:
        """The manifest of a tag or digest, and its digest."""
        ...


class _Platform(msgspec.Struct, gc=False):
    os: str | None = None
    architecture: str | None = None


class _Annotations(msgspec.Struct, gc=False):
    name: str | None = msgspec.field(name="org.opencontainers.image.ref.name", default=None)


class _Descriptor(msgspec.Struct, gc=False):
    # Both are required, and a digest has its length: a document of many empty descriptors ends at the first.
    digest: Annotated[str, msgspec.Meta(min_length=len("sha256:") + 64, max_length=len("sha512:") + 128)]
    size: Annotated[int, msgspec.Meta(ge=0)]
    platform: _Platform | None = None
    annotations: _Annotations | None = None


class _Document(msgspec.Struct):
    """The fields of a manifest or an index that count. What else it holds is passed over without an object made of it."""

    schema_version: int | None = msgspec.field(name="schemaVersion", default=None)
    media_type: str | None = msgspec.field(name="mediaType", default=None)
    layers: list[_Descriptor] | None = None
    manifests: list[_Descriptor] | None = None


class _Token(msgspec.Struct):
    token: str | None = None
    access_token: str | None = None


T = TypeVar("T")


def choose(shelf: RegistrySession, version: str, architecture: str) -> Manifest:
    """The manifest for an architecture, through an index where there is one."""
    raw, digest = shelf.manifest(version)
    document = _decode(raw, _Document)
    if document.media_type in _INDEXES or document.manifests is not None:
        raw, digest = shelf.manifest(_pick(document, architecture))
        document = _decode(raw, _Document)
    if document.schema_version != 2 or document.layers is None:
        raise ImageRefused("Unsupported", "the manifest of the container image is of an unknown form")
    if len(document.layers) > _MOST_LAYERS:
        raise ImageRefused("Unsupported", f"the container image has more than {_MOST_LAYERS} layers")
    return Manifest(digest, tuple(_layer(entry) for entry in document.layers))


def _decode(raw: bytes, kind: type[T]) -> T:
    """Read what a registry sent. Decoding holds the interpreter, so only the declared fields become objects."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise ImageRefused("NotAnImage", "the manifest of the container image is of an unknown form", why=str(error)) from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ImageRefused("NotAnImage", "the manifest of the container image is no JSON") from error


def _layer(entry: _Descriptor) -> RegistryLayer:
    if not _DIGEST.fullmatch(entry.digest):
        raise ImageRefused("NotAnImage", "the manifest of the container image names no layer that can be asked for")
    return RegistryLayer(entry.digest, entry.size)


def _pick(index: _Document, architecture: str) -> str:
    seen = set()
    for entry in index.manifests or ():
        place = entry.platform or _Platform()
        if place.os in ("linux", "", None) and place.architecture in (architecture, None):
            return entry.digest
        seen.add(place.architecture or "")
    there = ", ".join(name[:40] for name in sorted(seen - {"unknown", ""})[:20]) or "none"
    text = f"the container image is not there for the architecture {architecture}"
    raise ImageRefused("NotFound", text, why=f"there is {there}", reason=reasons.IMAGE_ARCHITECTURE)


class RemoteRepository:
    """One repository at one endpoint. Knows its token once it was asked for one."""

    def __init__(
        self, web: WebClient, endpoint: RegistryEndpoint, source: RegistryImage, stop: StopFlag, configured: RegistryCredentials
    ) -> None:
        self._web = web
        self._endpoint = endpoint
        self._trust = source.trust
        self._stop = stop
        self._credentials = configured
        self._authorization = f"Bearer {configured.token}" if configured.token else ""
        self._lock = threading.Lock()

    @property
    def shown(self) -> str:
        """The endpoint, for messages."""
        return self._endpoint.base

    def manifest(self, version: str) -> tuple[bytes, str]:
        """The manifest of a tag or digest, and its digest."""
        accept = ("Accept", ", ".join((*_MANIFESTS, *_INDEXES)))
        with self.ask("GET", f"manifests/{version}", (accept,)) as response:
            if response.status != 200:
                raise refusal(response)
            raw = response.read(_LARGEST_MANIFEST + 1)
        if len(raw) > _LARGEST_MANIFEST:
            raise ImageRefused("Unsupported", "the manifest of the container image is too large")
        digest = response.headers.get("Docker-Content-Digest", "").strip()
        wanted = version if ":" in version else digest
        if not wanted:
            return raw, f"sha256:{hashlib.sha256(raw).hexdigest()}"
        algorithm, _, value = wanted.partition(":")
        if algorithm not in ("sha256", "sha512") or hashlib.new(algorithm, raw).hexdigest() != value:
            raise ImageRefused("Checksum", f"the manifest that {self.shown} sent is not the one of the digest {wanted[:150]}")
        return raw, wanted

    def open_blob(self, digest: str, headers: dict[str, str]) -> DownloadResponse:
        """The answer that holds a blob, or a part of it."""
        response = self.ask("GET", f"blobs/{digest}", tuple(headers.items()))
        if response.status in (401, 403, 404):
            with response:
                raise refusal(response)
        return response

    def ask(self, method: str, path: str, headers: tuple[tuple[str, str], ...] = (), body: RequestBody = None) -> DownloadResponse:
        """One request below the repository, with a token when one is wanted. `path` may be a whole URL (uploads have them)."""
        url = path if "://" in path else f"{self._endpoint.base}/v2/{self._endpoint.repository}/{path}"
        used = self._authorization
        response = self._send(method, url, headers, body)
        if response.status != 401:
            return response
        with response:
            challenge = response.headers.get("WWW-Authenticate", "")
            with self._lock:
                # Another thread may have been given a token meanwhile.
                if self._authorization == used and not self._authorize(challenge):
                    raise refusal(response)
        response = self._send(method, url, headers, body)
        if response.status == 401:
            with response:
                raise refusal(response)
        return response

    def _send(self, method: str, url: str, headers: tuple[tuple[str, str], ...], body: RequestBody) -> DownloadResponse:
        private = (("Authorization", self._authorization),) if self._authorization else ()
        if private and urlsplit(url)[:2] != urlsplit(self._endpoint.base)[:2]:
            private = ()
        return self._web.open(DownloadRequest(url, method, headers, private, self._trust, body), self._stop)

    def _authorize(self, challenge: str) -> bool:
        """Answer a challenge; whether there is something new to try."""
        if len(challenge) > _LONGEST_CHALLENGE:
            raise ImageRefused("NotAuthorized", f"{self.shown} asks for a token in more than {_LONGEST_CHALLENGE} characters")
        scheme, _, rest = challenge.strip().partition(" ")
        if scheme.lower() == "basic" and self._credentials and not self._authorization:
            self._authorization = basic(self._credentials.username, self._credentials.password)
            return True
        if scheme.lower() != "bearer":
            return False
        fields = parameters(rest)
        realm = fields.pop("realm", "")
        schemes = ("https",) if self._endpoint.base.startswith("https:") else ("http", "https")
        if _scheme(realm) not in schemes:
            raise ImageRefused("NotAuthorized", f"{self.shown} asks for a token from a place that cannot be asked")
        query = urlencode({name: value for name, value in fields.items() if name in ("service", "scope")})
        private = (("Authorization", basic(self._credentials.username, self._credentials.password)),) if self._credentials else ()
        url = realm + ("&" if "?" in realm else "?") + query
        with self._web.open(
            DownloadRequest(url, private=private, trust=ServerTrust(ca=self._trust.ca, verify=self._trust.verify)), self._stop
        ) as response:
            if response.status != 200:
                raise refusal(response)
            answer = _decode(response.read(1 << 20), _Token)
        token = answer.token or answer.access_token
        if token is None or not token.isprintable():
            return False
        self._authorization = f"Bearer {token}"
        return True


def _scheme(url: str) -> str:
    """Return the scheme of an address that somebody sent; empty for one that cannot be read."""
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""


def parameters(challenge: str) -> dict[str, str]:
    """Return the quoted parameters of a challenge, in linear time: re holds the interpreter."""
    return dict(_PARAMETER.findall(challenge))


def refusal(response: DownloadResponse) -> ImageError:
    """Return the registry's error, in its own words."""
    error = bad_status(response)
    try:
        first = json.loads(response.read(65536))["errors"][0]
        said = ": ".join(str(first[name]) for name in ("code", "message") if first.get(name))
    except (ImageError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        said = ""
    error.why = "".join(c for c in said if c.isprintable())[:300]
    return error


def remote(web: WebClient, endpoint: RegistryEndpoint, source: RegistryImage, stop: StopFlag) -> RemoteRepository:
    """The endpoint with the credentials that the source has for it; those given by name are for every endpoint of the reference."""
    named = RegistryCredentials(source.username, source.password)
    return RemoteRepository(web, endpoint, source, stop, named or credentials(source.docker_configs, endpoint.host, endpoint.repository))


class OciArchive:
    """An OCI archive: a tar file that holds what a registry would."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[str, TarEntry] = {}
        with open(path, "rb", buffering=0) as file:
            for entry in Tar(file.read):
                if entry.kind == "file":
                    self._entries["/".join(entry.parts)] = entry

    def manifest(self, version: str) -> tuple[bytes, str]:
        """Of the tag (or the only one, or the one of a digest)."""
        if _DIGEST.fullmatch(version):
            return self._manifest(version)
        entries = _decode(self._small("index.json"), _Document).manifests or []
        named = [entry for entry in entries if entry.annotations and entry.annotations.name == version]
        chosen = named if version else entries
        if len(chosen) != 1:
            raise ImageRefused(
                "NotFound", f"the archive holds {len(chosen)} images of the name {version or '(none)'}", fix="name one of its tags"
            )
        if not _DIGEST.fullmatch(chosen[0].digest):
            raise ImageRefused("NotAnImage", "the index of the archive names no manifest that can be looked for")
        return self._manifest(chosen[0].digest)

    def _manifest(self, digest: str) -> tuple[bytes, str]:
        raw = self._small(f"blobs/{digest.replace(':', '/')}")
        algorithm, _, value = digest.partition(":")
        if hashlib.new(algorithm, raw).hexdigest() != value:
            raise ImageRefused("Checksum", f"the archive's manifest {digest} is damaged")
        return raw, digest

    def blob(self, digest: str, target: Path) -> None:
        entry = self._entry(f"blobs/{digest.replace(':', '/')}")
        with open(self._path, "rb", buffering=0) as file, open(target, "xb") as out:
            file.seek(entry.offset)
            left = entry.size
            hashed = hashlib.new(digest.partition(":")[0])
            while left and (data := file.read(min(left, 1 << 20))):
                out.write(data)
                hashed.update(data)
                left -= len(data)
        if left or hashed.hexdigest() != digest.partition(":")[2]:
            raise ImageRefused("Checksum", f"the archive's blob {digest} is damaged")

    def _small(self, name: str) -> bytes:
        entry = self._entry(name)
        if entry.size > _LARGEST_MANIFEST:
            raise ImageRefused("Unsupported", f"the archive's {name} is too large")
        with open(self._path, "rb") as file:
            file.seek(entry.offset)
            return file.read(entry.size)

    def _entry(self, name: str) -> TarEntry:
        entry = self._entries.get(name)
        if entry is None:
            raise ImageRefused("NotFound", f"the archive holds no {name[:150]}", fix="give an archive in the OCI layout")
        return entry


def describe(reference: RegistryReference | str, error: ImageError) -> ImageError:
    """The error of a pull, naming what was pulled."""
    error.of_pull(reference)
    return error
