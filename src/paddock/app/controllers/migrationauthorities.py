"""Whom servers trust that hand guests over: an authority of each server for that alone, and another one for each migration.

The authority of the API is not it: it has signed the certificate of every user. Others learn this one from ConfigMap `kubevirt-ca`, and
this server learns theirs from `kubevirt-external-ca`, as with KubeVirt. Whoever may write that decides whom the server trusts.
"""

import asyncio
import contextlib
import secrets
import ssl
from pathlib import Path
from typing import Literal

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.engine.machine import livelinks
from paddock.engine.machine.livelinks import Credentials
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.controllers.migration.peers import NAME
from paddock.server.security.pki import Authority

CONFIG_MAPS: Target[Data] = kind_target("", "ConfigMap")
OWN, OTHERS = Key("kubevirt", "kubevirt-ca"), Key("kubevirt", "kubevirt-external-ca")
BUNDLE = "ca-bundle"
_GROUP = "paddock:migrations"
_PUBLISH_SECONDS = 2.0


class UntrustedBundle(PaddockError):
    """The ConfigMap with the authorities of other servers cannot be used."""


class MigrationAuthorities:
    """The authority of this server, and those that it trusts now."""

    def __init__(self, folder: Path, client: Client) -> None:
        self._client = client
        self._authority = Authority(folder, name=f"{NAME}-{secrets.token_hex(8)}")

    async def listening(self) -> ssl.SSLContext:
        """Return the side of TLS that listens. Raises `PaddockError`."""
        return self._context(ssl.PROTOCOL_TLS_SERVER, self._authority.server([NAME]), await self._trusted())

    async def calling(self) -> ssl.SSLContext:
        """Return the side of TLS that connects. Raises `PaddockError`."""
        return self._context(ssl.PROTOCOL_TLS_CLIENT, self._authority.kept_client("peer", NAME, _GROUP), await self._trusted())

    def _context(self, protocol: int, pair: tuple[Path, Path], trusted: str) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(*pair)
        # Two namespaces of one server are two sides, too.
        context.load_verify_locations(cadata=self._authority.certificate.decode())
        if trusted.strip():
            try:
                context.load_verify_locations(cadata=trusted)
            except (ssl.SSLError, ValueError) as error:
                what = f"cannot read {BUNDLE} of ConfigMap {OTHERS}"
                raise UntrustedBundle(what, why=str(error), fix="it holds certificates as PEM") from error
        return context

    async def _trusted(self) -> str:
        found = await self._client.find(CONFIG_MAPS, OTHERS)
        return str(((found or {}).get("data") or {}).get(BUNDLE) or "")

    def credentials(self, side: Literal["source", "target"]) -> "MigrationCredentials":
        """Return what one side of one migration shows on QEMU's lines."""
        return MigrationCredentials(self._authority, side)

    async def keep(self) -> None:
        """Show the own authority, and make the place for those of others; until cancelled."""
        while True:
            with contextlib.suppress(PaddockError):
                await self._make(OWN, self._authority.certificate.decode())
                await self._make(OTHERS, None)
                break
            # The namespace is made at the first start.
            await asyncio.sleep(_PUBLISH_SECONDS)
        await asyncio.get_running_loop().create_future()

    async def _make(self, key: Key, bundle: str | None) -> None:
        metadata = {"name": key.name, "namespace": key.namespace}
        data = {BUNDLE: bundle or ""}
        try:
            await self._client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        except AlreadyExists:
            if bundle is not None:
                await self._client.patch(CONFIG_MAPS, key, merge_patch({"data": data}))


class MigrationCredentials:
    """What one side of one migration shows on the lines between the QEMUs: made in memory, and gone with it."""

    def __init__(self, authority: Authority, side: Literal["source", "target"]) -> None:
        signer, self.authority = authority.of_once(f"paddock-live-{side}-{secrets.token_hex(8)}")
        self._pair = signer.server(side, [livelinks.TARGET_NAME]) if side == "target" else signer.client(side, ())

    def trusting(self, authority: bytes) -> Credentials:
        """Return them, with the authority of the other side."""
        certificate, key = self._pair
        return Credentials(certificate, key, self.authority + authority)
