"""Settings of the driver, as the variables of its program give them."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from paddock_drivers.kit import refusals

_INSECURE = "TLS_INSECURE_SKIP_VERIFY"
_PATH = "/sdk"
_PORTS = {"https": 443, "http": 80}


class VSphereEndpoint(msgspec.Struct, frozen=True):
    """The address of a vCenter's or an ESXi host's web services."""

    host: str
    port: int
    path: str = _PATH
    secure: bool = True

    @property
    def authority(self) -> str:
        """Host and port as a URL has them; the port only if it is not the scheme's own."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _PORTS["https" if self.secure else "http"] else f"{name}:{self.port}"

    @property
    def origin(self) -> str:
        """The URL without a path."""
        return f"{'https' if self.secure else 'http'}://{self.authority}"


class PlacementDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """The places of machines that name none; each is a name or a path."""

    datacenter: str = ""
    cluster: str = ""
    resource_pool: str = ""
    folder: str = ""
    datastore: str = ""
    storage_pod: str = ""
    network: str = ""


class VSphereSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoint, and how it is used."""

    endpoint: VSphereEndpoint
    insecure: bool = False
    defaults: PlacementDefaults = PlacementDefaults()
    # Calls at a time; each has a connection of its own.
    threads: int = 12
    connect_seconds: float = 10.0
    # the longest silence within an answer
    answer_seconds: float = 60.0
    # how long a refused name and password are not tried again, so that the account is not locked
    refusal_seconds: float = 60.0
    # how long a call waits for a task of vSphere that may be short, before it answers with the task
    quick_seconds: float = 2.0
    # objects in one page of an answer
    page: int = 500


def endpoint_of(text: str) -> VSphereEndpoint:
    """Return the endpoint that a Provider's text names; raises InvalidSpec."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in _PORTS or not parts.hostname or parts.username is not None:
        raise refusals.invalid("the endpoint is no address of a vCenter", fix="give it as https://HOST or https://HOST:PORT/sdk")
    path = parts.path.rstrip("/") or _PATH
    return VSphereEndpoint(host=parts.hostname, port=port or _PORTS[parts.scheme], path=path, secure=parts.scheme == "https")


def of_environment(variables: Mapping[str, str]) -> VSphereSettings:
    """Return the settings that the variables of a provider's program give."""
    defaults = PlacementDefaults(
        datacenter=variables.get("VSPHERE_DATACENTER", ""),
        cluster=variables.get("PROVIDER_DEFAULT_CLUSTER", ""),
        resource_pool=variables.get("PROVIDER_DEFAULT_RESOURCE_POOL", ""),
        folder=variables.get("PROVIDER_DEFAULT_FOLDER", ""),
        datastore=variables.get("PROVIDER_DEFAULT_DATASTORE", ""),
        storage_pod=variables.get("PROVIDER_DEFAULT_STORAGE_POD", ""),
        network=variables.get("PROVIDER_DEFAULT_NETWORK", ""),
    )
    endpoint = endpoint_of(variables.get("PROVIDER_ENDPOINT", ""))
    return VSphereSettings(endpoint=endpoint, insecure=variables.get(_INSECURE, "").lower() == "true", defaults=defaults)
