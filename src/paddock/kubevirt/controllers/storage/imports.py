"""From what a DataVolume says of a source to what the image library fetches: Secrets and ConfigMaps are read, forms are made one.

What is refused here says why: a source that needs a library of somebody else, or reads a file of this host.
"""

import base64
import binascii
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote, urlsplit

from paddock.base import reasons
from paddock.base.clock import Clock
from paddock.base.errors import Terminal
from paddock.base.images.sources import Http, RegistryImage, ServerTrust, Source, header_line
from paddock.base.jsondata import Data
from paddock.kubernetes.client import presigned
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.target import Key
from paddock.kubevirt.controllers.storage.targets import CONFIG_MAPS, SECRETS
from paddock.kubevirt.controllers.storage.transfers import TransferBlocked
from paddock.kubevirt.kinds import pem
from paddock.kubevirt.kinds.datavolume import CertConfig, GcsSource, HttpSource, RegistrySource, S3Source
from paddock.kubevirt.plan.storage.contents import VolumeContent

_USER, _PASSWORD = "accessKeyId", "secretKey"
_DOCKER_CONFIG = ".dockerconfigjson"


class SourceRefused(Terminal):
    """A source that cannot be imported from at all."""

    reason_code = reasons.SOURCE_UNSUPPORTED


class ImportSourceReader:
    """Reads what a source refers to."""

    def __init__(self, client: Client, clock: Clock, insecure: Callable[[], Iterable[str]] = tuple) -> None:
        self._client = client
        self._clock = clock
        self._insecure = insecure

    async def source(self, content: VolumeContent, namespace: str) -> Source:
        """Return what the library fetches; raises `TransferBlocked` while a Secret or ConfigMap is missing, `SourceRefused` otherwise."""
        source = content.source
        if isinstance(source, HttpSource):
            return await self._http(source, namespace)
        if isinstance(source, RegistrySource):
            return await self._registry(source, namespace)
        if isinstance(source, S3Source):
            return await self._s3(source, namespace)
        if isinstance(source, GcsSource):
            return self._gcs(source)
        raise SourceRefused(f"cannot import from {content.kind}", why=_REFUSED.get(content.kind, "nothing here knows it"), fix=_INSTEAD)

    async def _http(self, source: HttpSource, namespace: str) -> Http:
        user, password = await self._account(source.secretRef, namespace)
        secret_headers: list[tuple[str, str]] = []
        for name in source.secretExtraHeaders or ():
            for value in (await self._secret(name, namespace)).values():
                secret_headers += [header_line(line) for line in _lines(value)]
        authorities = await self._authorities(source.certConfigMap, namespace)
        trust = ServerTrust(ca=authorities, verify=not source.insecureSkipVerify)
        if source.certConfig is not None:
            trust = await self._trust(source.certConfig, namespace, trust)
        return Http(
            url=source.url,
            username=user,
            password=password,
            headers=tuple(header_line(line) for line in source.extraHeaders or ()),
            secret_headers=tuple(secret_headers),
            trust=trust,
            checksum=source.checksum or "",
        )

    async def _trust(self, cert_config: CertConfig, namespace: str, trust: ServerTrust) -> ServerTrust:
        authorities, certificate, key = [trust.ca, _bundle(cert_config.caBundle or "")], "", ""
        if cert_config.secretRef is not None:
            secret = await self._secret(cert_config.secretRef.name, namespace)
            authorities.append(_bundle(_text(pem.first(secret, pem.AUTHORITIES))))
            certificate, key = _text(secret.get("tls.crt", b"")), _text(secret.get("tls.key", b""))
        if cert_config.cert is not None and cert_config.cert.secretRef is not None:
            certificate = _text(await self._member(cert_config.cert.secretRef.name, pem.CERTIFICATE, namespace))
        if cert_config.key is not None and cert_config.key.secretRef is not None:
            key = _text(await self._member(cert_config.key.secretRef.name, pem.KEY, namespace))
        return ServerTrust(ca="\n".join(each for each in authorities if each), certificate=certificate, key=key, verify=trust.verify)

    async def _registry(self, source: RegistrySource, namespace: str) -> RegistryImage:
        url = source.url or ""
        if not url:
            raise SourceRefused("cannot import from an image stream", why="this host has no OpenShift registry", fix="give the url instead")
        user, password = "", ""
        configs: tuple[str, ...] = ()
        if source.secretRef:
            secret = await self._secret(source.secretRef, namespace)
            user, password = _text(secret.get(_USER, b"")), _text(secret.get(_PASSWORD, b""))
            configs = (_text(secret[_DOCKER_CONFIG]),) if _DOCKER_CONFIG in secret else ()
        host = urlsplit(url).netloc.rpartition("@")[2]
        return RegistryImage(
            reference=url,
            architecture=(source.platform.architecture or "") if source.platform else "",
            username=user,
            password=password,
            docker_configs=configs,
            trust=ServerTrust(ca=await self._authorities(source.certConfigMap, namespace), verify=host not in set(self._insecure())),
        )

    async def _s3(self, source: S3Source, namespace: str) -> Http:
        url = source.url
        if url.startswith("s3://"):
            parts = urlsplit(url)
            url = f"https://{parts.netloc}.s3.amazonaws.com{quote(parts.path)}"
        trust = ServerTrust(ca=await self._authorities(source.certConfigMap, namespace))
        user, password = await self._account(source.secretRef, namespace)
        if not user:
            return Http(url=url, trust=trust)
        # The signed URL is another each time; what it leads to is not.
        return Http(url=presigned.url(url, user, password, self._clock.seconds()), trust=trust, stands_for=url)

    def _gcs(self, source: GcsSource) -> Http:
        if source.secretRef:
            why = "the key of a service account has to be exchanged for a token at Google, which is not done here"
            raise SourceRefused("cannot import from gcs with a Secret", why=why, fix="make a signed URL and use http")
        url = source.url
        if url.startswith("gs://"):
            parts = urlsplit(url)
            url = f"https://storage.googleapis.com/{parts.netloc}{quote(parts.path)}"
        return Http(url=url)

    # --- Secrets and ConfigMaps -------------------------------------------------------------------------------------------

    async def _account(self, name: str | None, namespace: str) -> tuple[str, str]:
        if not name:
            return "", ""
        secret = await self._secret(name, namespace)
        if _USER not in secret and _PASSWORD not in secret:
            why = f"it has neither {_USER} nor {_PASSWORD}"
            raise TransferBlocked("SecretIncomplete", f"cannot use Secret {namespace}/{name}", why=why, fix="add them")
        return _text(secret.get(_USER, b"")), _text(secret.get(_PASSWORD, b""))

    async def _member(self, name: str, members: tuple[str, ...], namespace: str) -> bytes:
        found = pem.first(await self._secret(name, namespace), members)
        if not found:
            raise TransferBlocked("SecretIncomplete", f"cannot use Secret {namespace}/{name}", why=f"it has no {members[0]}", fix="add it")
        return found

    async def _secret(self, name: str, namespace: str) -> dict[str, bytes]:
        data = await self._read(SECRETS, name, namespace, "Secret")
        try:
            return {key: base64.b64decode(value) for key, value in (data.get("data") or {}).items()}
        except binascii.Error as error:
            raise TransferBlocked("SecretIncomplete", f"cannot use Secret {namespace}/{name}", why="a value is not base64") from error

    async def _authorities(self, name: str | None, namespace: str) -> str:
        if not name:
            return ""
        data = (await self._read(CONFIG_MAPS, name, namespace, "ConfigMap")).get("data") or {}
        found = [value for key, value in data.items() if key.endswith((".crt", ".pem"))]
        if not found:
            why = "none of its keys ends with .crt or .pem"
            raise TransferBlocked("ConfigMapIncomplete", f"cannot use ConfigMap {namespace}/{name}", why=why, fix="add the certificates")
        return "\n".join(found)

    async def _read(self, target: Any, name: str, namespace: str, kind: str) -> Data:
        try:
            found: Data = await self._client.get(target, Key(namespace, name))
        except NotFound as error:
            raise TransferBlocked(f"{kind}NotFound", f"{kind} {namespace}/{name} is not there", fix="make it") from error
        return found


_INSTEAD = "use http, registry, s3, or upload the disk"
_REFUSED = {
    "imageio": "disks of oVirt are not read here",
    "vddk": "disks of VMware need VMware's own library, which is not on this host",
}


def _text(value: bytes) -> str:
    return value.decode(errors="replace").strip()


def _lines(value: bytes) -> list[str]:
    return [line for line in value.decode(errors="replace").splitlines() if line.strip()]


def _bundle(text: str) -> str:
    """PEM, as it is or in base64."""
    if not text or "-----BEGIN" in text:
        return text
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        # Whoever reads it says what is wrong with it.
        return text
