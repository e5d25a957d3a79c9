"""Settings of the driver, and the endpoint that a Provider names."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec

from paddock.base import reasons
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.factory import DriverContext
from paddock_drivers.kit.staging import nfs_mounts

# Names of the files in the directory of credentials.
USERNAME, PASSWORD, KEY, KNOWN_HOSTS = "username", "password", "ssh-privatekey", "known_hosts"
_CERTIFICATES = ("cacert.pem", "clientcert.pem", "clientkey.pem")
_DRIVERS = ("qemu", "test")
_TRANSPORTS = ("", "unix", "ssh", "libssh", "libssh2", "tls", "tcp")
_SSH = ("ssh", "libssh", "libssh2")
# libvirt speaks SSH with either library. Its client of libssh ends the process when an answer lies half-read while a stream is finished.
_SPOKEN = {"ssh": "libssh2", "libssh": "libssh2"}
# Parameters that decide which program runs here, or which of this host's files is read.
_FORBIDDEN = frozenset(
    {"command", "netcat", "proxy", "keyfile", "known_hosts", "known_hosts_verify", "no_verify", "no_sanity", "pkipath", "sshauth"}
)
_INSECURE = ("TLS_INSECURE_SKIP_VERIFY", "LIBVIRT_INSECURE_SKIP_HOST_KEY_VERIFICATION")


class LibvirtDriverSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The hypervisor, and where machines go that do not say it."""

    endpoint: str
    credentials: Path
    # neither host keys nor certificates are checked
    insecure: bool = False
    # the pool of machines without a datastore, and the network of cards without one
    pool: str = "default"
    network: str = "default"
    # where the screens of machines listen, as the hypervisor sees it
    console_address: str = "127.0.0.1"
    # the storage between providers that the driver reaches, and where it may keep files meanwhile; None: the system's place
    staging: Path | None = None
    mounts: Mapping[str, Path] = {}
    scratch: Path | None = None
    # networks, addresses and hosts of this machine that images may come from
    image_hosts: tuple[str, ...] = ()
    # calls at once on the connection; libvirtd takes five of one client by default
    workers: int = 5
    open_seconds: float = 30.0
    # a peer that says nothing for so long is gone
    silence_seconds: int = 20
    # how long a create waits for disks before it goes on as a task
    create_seconds: float = 20.0
    graceful_seconds: int = 60
    # how long a guest may take to restart by itself, before it is reset
    restart_seconds: int = 60
    # how long a command waits for the agent of a guest that boots
    agent_seconds: float = 60.0
    # the pause between two looks at what sends no events
    poll_seconds: float = 1.0


def of_context(context: DriverContext) -> LibvirtDriverSettings:
    """Return the settings that a Provider's program is started with."""
    environment = context.environment
    claims = context.staging
    return LibvirtDriverSettings(
        endpoint=checked_endpoint(environment.get("PROVIDER_ENDPOINT", "") or environment.get("LIBVIRT_URI", "") or "qemu:///system"),
        credentials=context.credentials,
        insecure=any(environment.get(name, "").lower() in ("true", "1") for name in _INSECURE),
        pool=environment.get("PROVIDER_DEFAULT_DATASTORE") or "default",
        network=environment.get("PROVIDER_DEFAULT_NETWORK") or "default",
        console_address=environment.get("LIBVIRT_CONSOLE_ADDRESS") or "127.0.0.1",
        staging=claims,
        mounts=nfs_mounts(environment),
        scratch=claims if claims.is_dir() else None,
        image_hosts=tuple(each.strip() for each in environment.get("PROVIDER_IMAGE_HOSTS", "").split(",") if each.strip()),
    )


def checked_endpoint(endpoint: str) -> str:
    """Return an endpoint that the driver can use; raises InvalidSpec."""
    try:
        parts = urlsplit(endpoint)
        _ = parts.port
    except ValueError:
        raise _invalid("it is no URI") from None
    driver, _, transport = parts.scheme.partition("+")
    if driver not in _DRIVERS or transport not in _TRANSPORTS:
        raise _invalid("it has to begin with qemu://, qemu+ssh://, qemu+tls://, qemu+tcp:// or qemu+unix://")
    if parts.password:
        raise _invalid("it holds a password", "store it as `password` in the Secret of spec.credentialSecretRef")
    wrong = sorted({name for name, _ in parse_qsl(parts.query)} & _FORBIDDEN)
    if wrong:
        raise _invalid(f"it has the parameter {wrong[0]}", "remove it; keys and known hosts stand in the Secret")
    return endpoint


def uri(settings: LibvirtDriverSettings, files: Mapping[str, bytes]) -> str:
    """Return what libvirt opens: the endpoint with the credentials that its transport takes. `files` are those of the credentials.

    SSH is spoken by libvirt itself (libssh2), which takes the key and the known hosts as files and starts no program.
    """
    parts = urlsplit(settings.endpoint)
    driver, _, transport = parts.scheme.partition("+")
    host, query = parts.netloc, dict(parse_qsl(parts.query))
    user = files.get(USERNAME, b"").decode(errors="replace").strip()
    remote = bool(parts.hostname)
    if transport in _SSH and remote:
        transport = _SPOKEN.get(transport, transport)
        if user and "@" not in host:
            host = f"{quote(user, safe='')}@{host}"
        query |= _ssh_parameters(settings, files)
    elif remote and transport in ("", "tls"):
        if settings.insecure:
            query["no_verify"] = "1"
        if all(name in files for name in _CERTIFICATES):
            query["pkipath"] = str(settings.credentials)
    scheme = f"{driver}+{transport}" if transport else driver
    words = urlencode(query, safe="/,", quote_via=quote)
    # An empty host has to keep its slashes, which urlunsplit drops.
    return f"{scheme}://{host}{parts.path}{'?' if words else ''}{words}"


def _ssh_parameters(settings: LibvirtDriverSettings, files: Mapping[str, bytes]) -> dict[str, str]:
    found = {"no_tty": "1"}
    if KEY in files:
        found |= {"keyfile": str(settings.credentials / KEY), "sshauth": "privkey"}
    elif PASSWORD in files:
        found["sshauth"] = "password,keyboard-interactive"
    else:
        why = f"neither {KEY} nor {PASSWORD} is among the credentials"
        raise ProviderError(
            ErrorKind.UNAUTHORIZED, "cannot log in by SSH", why=why, fix="store one in the Secret of spec.credentialSecretRef"
        )
    if settings.insecure:
        found["known_hosts_verify"] = "ignore"
    elif KNOWN_HOSTS in files:
        found |= {"known_hosts": str(settings.credentials / KNOWN_HOSTS), "known_hosts_verify": "normal"}
    else:
        fix = f"store the host's key as `{KNOWN_HOSTS}` in the Secret (ssh-keyscan prints it), or set insecureSkipVerify"
        why = f"no {KNOWN_HOSTS} is among the credentials"
        raise ProviderError(ErrorKind.UNAUTHORIZED, "cannot trust the host", why=why, fix=fix, reason=reasons.HYPERVISOR_HOST_KEY)
    return found


def _invalid(why: str, fix: str = "change spec.endpoint") -> ProviderError:
    return ProviderError(ErrorKind.INVALID_SPEC, "the endpoint cannot be used", why=why, fix=fix)
