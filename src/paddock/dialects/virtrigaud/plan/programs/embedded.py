"""The programs of Providers on the embedded server: in its process, in a child of it, or none."""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

import msgspec

from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.plan import marks
from paddock.kubernetes.meta.world import namespace_of

OWN_TYPE = "qemu"
KUBECONFIG = "kubeconfig"
LIBVIRT = "libvirt"
# Of a libvirtd for the whole host.
_SOCKET = "/run/libvirt/libvirt-sock"
# Of the APIs of vCenter and Proxmox VE, which no host with Paddock has: a document for these runs here when its type alone is changed.
_FOREIGN_PATHS = ("/sdk", "/api2/json")


class DriverOffer(msgspec.Struct, frozen=True):
    """The drivers of a server: those that its user chose for types, and for the other types why there is none ("": there is one).

    `apart` says why a driver is not run by a server, but served beside it.
    """

    chosen: Mapping[str, str] = {}
    missing: Mapping[str, str] = {}
    apart: Mapping[str, str] = {}


class EmbeddedChoice(msgspec.Struct, frozen=True):
    """The place of a Provider's driver: this process, or a child that serves `driver`; or the reason why it is nowhere."""

    own: bool = False
    driver: str = ""
    reason: str = ""
    problem: str = ""


def choose(provider: Provider, credentials: Mapping[str, bytes] | None, offer: DriverOffer) -> EmbeddedChoice:
    """Decide for a Provider. `credentials` has the values of its Secret, None if there is none."""
    kind, chosen = provider.spec.type, offer.chosen.get(provider.spec.type, "")
    given = provider.spec.credentialSecretRef
    where = f"Secret {namespace_of(provider)}/{given.name}"
    if not chosen and kind == OWN_TYPE:
        if is_here(provider.spec.endpoint) and KUBECONFIG not in (credentials or {}):
            return EmbeddedChoice(own=True)
        if credentials is not None and KUBECONFIG not in credentials:
            text = f"{where} of spec.credentialSecretRef has no key {KUBECONFIG}: it has the way into {provider.spec.endpoint}"
            return EmbeddedChoice(reason="CredentialsMissing", problem=text)
    elif not chosen and (why := offer.missing.get(kind, "")):
        return EmbeddedChoice(reason="DriverMissing", problem=f"there is no driver for Providers of type {kind}: {why}")
    elif not chosen and (why := offer.apart.get(kind, "")):
        text = f"this server does not run Providers of type {kind}: {why}, and name its address in {marks.PROVIDER_ADDRESS}"
        return EmbeddedChoice(reason="DriverMissing", problem=text)
    if problem := credentials_problem(provider, credentials):
        return EmbeddedChoice(reason="CredentialsMissing", problem=problem)
    return EmbeddedChoice(driver=chosen or kind)


def credentials_problem(provider: Provider, credentials: Mapping[str, bytes] | None) -> str:
    """Return why there are no credentials; empty if there are. Those of another namespace are not the Provider's to use."""
    given, own = provider.spec.credentialSecretRef, namespace_of(provider)
    if given.namespace not in (None, "", own):
        return f"spec.credentialSecretRef names the namespace {given.namespace}; copy the Secret into {own}, the Provider's own"
    return "" if credentials is not None else f"Secret {own}/{given.name} of spec.credentialSecretRef does not exist"


def is_here(endpoint: str) -> bool:
    """Return whether an endpoint of type qemu is no other host's: it names none, or the API of another hypervisor."""
    return not host_of(endpoint) or urlsplit(endpoint).path.rstrip("/") in _FOREIGN_PATHS


def host_of(endpoint: str) -> str:
    """The host of an endpoint; empty for one of this host."""
    try:
        return urlsplit(endpoint).hostname or ""
    except ValueError:
        return ""


def local_socket(provider: Provider) -> str:
    """Return the socket of this host that an endpoint of type libvirt leads to; empty for another host's.

    Whoever may use it has the rights of the daemon behind it, which are root's.
    """
    if provider.spec.type != LIBVIRT or host_of(provider.spec.endpoint):
        return ""
    try:
        given = dict(parse_qsl(urlsplit(provider.spec.endpoint).query))
    except ValueError:
        return _SOCKET
    return given.get("socket") or _SOCKET


def server_problem(provider: Provider, server: str) -> str:
    """Return why a kubeconfig is not one for the endpoint: it has to be for the server that the Provider shows to everybody."""
    wanted, found = host_of(provider.spec.endpoint), host_of(server)
    if not wanted or wanted == found:
        return ""
    return f"the kubeconfig is for {found or 'no host'}, but spec.endpoint names {wanted}"
