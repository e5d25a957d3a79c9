"""Makes drivers for the cluster that PROVIDER_ENDPOINT names, with the account of the Provider's Secret."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from paddock.contract.driver import Driver
from paddock.contract.factory import DriverContext
from paddock.kubernetes.client.access import Access, StaticCredential
from paddock.kubernetes.client.errors import BadAccess
from paddock.kubernetes.client.http.https import Https
from paddock_drivers.kit.staging import StagingSettings, nfs_mounts
from paddock_drivers.proxmox import credentials
from paddock_drivers.proxmox.api import ProxmoxApi
from paddock_drivers.proxmox.credentials import ProxmoxAccountCredentials
from paddock_drivers.proxmox.driver import ProxmoxDriver
from paddock_drivers.proxmox.settings import ProxmoxSettings

_AUTHORITY = "ca.crt"
_DEFAULT_PORT = 8006


@asynccontextmanager
async def make(context: DriverContext) -> AsyncIterator[Driver]:
    """A driver for the cluster. The files of the account are read when the first request is sent, and after a refusal."""
    environment = context.environment
    insecure = any(environment.get(name, "").lower() == "true" for name in ("TLS_INSECURE_SKIP_VERIFY", "PVE_INSECURE_SKIP_VERIFY"))
    server = endpoint(environment.get("PROVIDER_ENDPOINT", ""))
    access = Access(server=server, authority=b"" if insecure else _authority(context), insecure=insecure, credentials=StaticCredential())
    own = ProxmoxAccountCredentials(lambda: credentials.read(context.credentials), access)
    transport = Https(msgspec.structs.replace(access, credentials=own))
    driver = ProxmoxDriver(ProxmoxApi(transport), _settings(context, server), clock=context.clock)
    try:
        yield driver
    finally:
        await driver.close()
        await transport.close()


def endpoint(text: str) -> str:
    """Return the address of the API: https, on port 8006 unless another one is named; raises `BadAccess`."""
    try:
        url = urlsplit(text.strip())
        host, port = url.hostname or "", url.port or _DEFAULT_PORT
    except ValueError:
        host, port, url = "", 0, urlsplit("")
    if url.scheme not in ("https", "http") or not host or url.username is not None:
        raise BadAccess("the endpoint of the Provider is no address of Proxmox VE", fix="write https://HOST:8006, without a user")
    name = f"[{host}]" if ":" in host else host
    # Whatever path people copy from their browser, the API is at the root.
    return f"{url.scheme}://{name}:{port}"


def _authority(context: DriverContext) -> bytes:
    """The authorities to trust: those of the Secret, or of the file that PVE_CA_BUNDLE names; none for those of the system."""
    named = context.environment.get("PVE_CA_BUNDLE", "")
    path = Path(named) if named else context.credentials / _AUTHORITY
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        if named:
            raise BadAccess(
                "the file of PVE_CA_BUNDLE does not exist", fix="mount it, or write the authority to ca.crt of the Secret"
            ) from error
        return b""
    except OSError as error:
        raise BadAccess(f"the authority {path.name} cannot be read", why=type(error).__name__) from error


def _settings(context: DriverContext, server: str) -> ProxmoxSettings:
    environment = context.environment
    account = ""
    with suppress(BadAccess):
        found = credentials.read(context.credentials)
        account = found.token or found.user
    defaults = ProxmoxSettings()
    nodes = environment.get("PVE_NODE_SELECTOR", "") or environment.get("PVE_NODE", "")
    return ProxmoxSettings(
        server=server,
        account=account,
        storage=environment.get("PROVIDER_DEFAULT_DATASTORE", "") or environment.get("PVE_DEFAULT_STORAGE", ""),
        import_storage=environment.get("PVE_IMPORT_STORAGE", ""),
        iso_storage=environment.get("PVE_ISO_STORAGE", ""),
        nodes=tuple(each.strip() for each in nodes.split(",") if each.strip()),
        bridge=environment.get("PVE_DEFAULT_BRIDGE", "") or defaults.bridge,
        cpu_type=environment.get("PVE_CPU_TYPE", "") or defaults.cpu_type,
        full_clones=environment.get("PVE_LINKED_CLONES", "").lower() != "true",
        staging=StagingSettings(claims=context.staging, mounts=nfs_mounts(environment)),
    )
