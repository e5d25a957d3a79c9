"""Container registries by the distribution protocol (v2), and OCI archives: manifests and blobs, each held against its digest."""

import hashlib
import json
import platform
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

from paddock.base import reasons
from paddock.engine.images.errors import ImageError, ImageRefused
from paddock.engine.images.http import DownloadRequest, DownloadResponse, RequestBody, WebClient, bad_status, basic
from paddock.engine.images.references import RegistryCredentials, RegistryEndpoint, RegistryReference, credentials
from paddock.engine.images.sources import RegistryImage, ServerTrust
from paddock.engine.images.stopflag import StopFlag
from paddock.engine.images.tar import Tar, TarEntry

_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_LARGEST_MANIFEST = 4 << 20
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


def choose(shelf: RegistrySession, version: str, architecture: str) -> Manifest:
    """The manifest for an architecture, through an index where there is one."""
    raw, digest = shelf.manifest(version)
    told = _json(raw)
    if told.get("mediaType") in _INDEXES or "manifests" in told:
        raw, digest = shelf.manifest(_pick(told, architecture))
        told = _json(raw)
    if told.get("schemaVersion") != 2 or not isinstance(told.get("layers"), list):
        raise ImageRefused("Unsupported", "the manifest of the container image is of an unknown form")
    layers = tuple(_layer(entry) for entry in told["layers"])
    if len(layers) > _MOST_LAYERS:
        raise ImageRefused("Unsupported", f"the container image has more than {_MOST_LAYERS} layers")
    return Manifest(digest, layers)


def _json(raw: bytes) -> dict[str, Any]:
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ImageRefused("NotAnImage", "the manifest of the container image is no JSON") from error
    if not isinstance(told, dict):
        raise ImageRefused("NotAnImage", "the manifest of the container image is no object")
    return told


def _layer(entry: object) -> RegistryLayer:
    digest = entry.get("digest") if isinstance(entry, dict) else None
    size = entry.get("size") if isinstance(entry, dict) else None
    if not isinstance(digest, str) or not re.fullmatch(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}", digest) or not isinstance(size, int):
        raise ImageRefused("NotAnImage", "the manifest of the container image names no layer that can be asked for")
    return RegistryLayer(digest, size)


def _pick(index: dict[str, Any], architecture: str) -> str:
    entries = [entry for entry in index.get("manifests") or () if isinstance(entry, dict) and isinstance(entry.get("digest"), str)]
    seen = []
    for entry in entries:
        place = entry.get("platform")
        place = place if isinstance(place, dict) else {}
        if place.get("os", "linux") in ("linux", "") and place.get("architecture", architecture) == architecture:
            return str(entry["digest"])
        seen.append(str(place.get("architecture")))
    there = ", ".join(sorted(set(seen) - {"unknown", "None"})) or "none"
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
        scheme, _, rest = challenge.strip().partition(" ")
        if scheme.lower() == "basic" and self._credentials and not self._authorization:
            self._authorization = basic(self._credentials.username, self._credentials.password)
            return True
        if scheme.lower() != "bearer":
            return False
        fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        realm = fields.pop("realm", "")
        if urlsplit(realm).scheme not in ("http", "https") or (self._endpoint.base.startswith("https:") and realm.startswith("http:")):
            raise ImageRefused("NotAuthorized", f"{self.shown} asks for a token from a place that cannot be asked")
        query = urlencode({name: value for name, value in fields.items() if name in ("service", "scope")})
        private = (("Authorization", basic(self._credentials.username, self._credentials.password)),) if self._credentials else ()
        url = realm + ("&" if "?" in realm else "?") + query
        with self._web.open(
            DownloadRequest(url, private=private, trust=ServerTrust(ca=self._trust.ca, verify=self._trust.verify)), self._stop
        ) as response:
            if response.status != 200:
                raise refusal(response)
            told = _json(response.read(1 << 20))
        token = told.get("token") or told.get("access_token")
        if not isinstance(token, str) or not token.isprintable():
            return False
        self._authorization = f"Bearer {token}"
        return True


def refusal(response: DownloadResponse) -> ImageError:
    """Return the registry's error, in its own words."""
    error = bad_status(response)
    try:
        told = json.loads(response.read(65536))["errors"][0]
        said = ": ".join(str(told[name]) for name in ("code", "message") if told.get(name))
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
        if re.fullmatch(r"sha(256|512):[0-9a-f]+", version):
            raw = self._small(f"blobs/{version.replace(':', '/')}")
            algorithm, _, value = version.partition(":")
            if hashlib.new(algorithm, raw).hexdigest() != value:
                raise ImageRefused("Checksum", f"the archive's manifest {version} is damaged")
            return raw, version
        entries = [entry for entry in _json(self._small("index.json")).get("manifests") or () if isinstance(entry, dict)]
        named = [entry for entry in entries if (entry.get("annotations") or {}).get("org.opencontainers.image.ref.name") == version]
        chosen = named if version else entries
        if len(chosen) != 1:
            raise ImageRefused(
                "NotFound", f"the archive holds {len(chosen)} images of the name {version or '(none)'}", fix="name one of its tags"
            )
        return self.manifest(str(chosen[0].get("digest")))

    def blob(self, digest: str, target: Path) -> None:
        """Copy a blob out."""
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
