"""Settings of a server, fixed at its start."""

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

import msgspec

from paddock.base.errors import Terminal
from paddock.server.security.oidcsettings import OidcSettings

DEFAULT_PORT = 7443


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """Certificates that somebody else makes. Without them the server makes its own."""

    certificate: Path | None = None
    key: Path | None = None
    # whose client certificates are taken
    clients: Path | None = None
    least: str = "VersionTLS12"


class Accounts(msgspec.Struct, frozen=True, kw_only=True):
    issuers: tuple[str, ...] = ("https://kubernetes.default.svc",)
    audiences: tuple[str, ...] = ()
    # the key that signs, when it is not the server's own, and files with more keys that are believed
    signing_key: Path | None = None
    believed_keys: tuple[Path, ...] = ()
    # where others fetch the keys; empty: from this server
    keys_uri: str = ""
    # 0: no limit
    longest_seconds: int = 0


class ClientLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits for clients (docs/run/limits.md)."""

    # requests that are worked on at once, shared out by priority levels
    requests: int = 240
    # seconds that a request may take, a quarter of them in a queue
    request_seconds: float = 60.0
    head_bytes: int = 64 * 1024
    body_bytes: int = 3 * 1024 * 1024
    bodies_bytes: int = 128 * 1024 * 1024
    receive_seconds: float = 30.0
    idle_seconds: float = 180.0
    send_seconds: float = 60.0
    connections: int = 5000
    connections_per_address: int = 2500


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The record of requests (docs/run/audit.md)."""

    level: str = "Metadata"
    policy: Path | None = None
    # None: the place in the server's directory
    path: Path | None = None
    largest_bytes: int = 64 * 1024 * 1024
    files: int = 4
    days: float = 0
    # refuse changes that cannot be recorded
    strict: bool = False


class MachineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of machines on this host (docs/use/machines.md)."""

    # real, or simulated (docs/testing/simulated-guests.md), which seem to run on so many nodes
    guests: str = "real"
    nodes: int = 1
    # the minor of the release 1.x of KubeVirt whose API is served; 0: all of Paddock's (docs/testing/kubevirt-releases.md)
    kubevirt_release: int = 0
    # auto, routed, rootless or user
    network: str = "auto"
    # empty: one that the host does not use
    pod_network: str = ""
    # hosts and networks of this very host that images may come from
    image_hosts: tuple[str, ...] = ()
    mirrors: dict[str, tuple[str, ...]] = {}
    # beginning of a URL -> what stands in its place
    url_mirrors: dict[str, str] = {}
    insecure_registries: tuple[str, ...] = ()
    # days that an unused image is kept
    image_retention: float = 7.0
    # where files of oci-archive: may be
    archives: tuple[Path, ...] = ()
    # further places for volumes
    pools: dict[str, Path] = {}
    # where files of hostDisk volumes may be
    host_paths: tuple[Path, ...] = ()
    # directories that PersistentVolumes with hostPath may share with machines
    shares: tuple[Path, ...] = ()
    memory_overcommit: float = 1.0
    # address and port at which other servers hand running guests over; None: nobody does
    migrations: tuple[str, int] | None = None


class ProviderProgramSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of VirtRigaud's Providers (docs/dialects/virtrigaud.md)."""

    # hosts and networks of this very host that Providers may name
    hosts: tuple[str, ...] = ()
    # type of Provider -> the driver that serves it, in place of the type's own
    drivers: dict[str, str] = {}
    # hosts of buckets and NFS exports that migrations may use; none: every host that is not refused
    migration_hosts: tuple[str, ...] = ()


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one start."""

    root: Path
    # objects are kept in memory and go with the process
    in_memory: bool = False
    # the directory goes with the process, too
    temporary: bool = False
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    # the address that clients get, when it is another one
    advertise: str = ""
    # of the context in its kubeconfig; empty: named after the directory
    context: str = ""
    # names and addresses the serving certificate is valid for besides the usual ones
    names: tuple[str, ...] = ()
    tls: Tls = Tls()
    accounts: Accounts = Accounts()
    oidc: OidcSettings | None = None
    limits: ClientLimits = ClientLimits()
    token_file: Path | None = None
    # requests without a credential are somebody, namely system:anonymous
    anonymous: bool = True
    # everybody may do everything
    open_to_all: bool = False
    # where Services get their addresses from
    # where Services get their addresses from, IPv4 first
    networks: tuple[IPv4Network | IPv6Network, ...] = (IPv4Network("10.96.0.0/12"),)
    # admission by the names of kube-apiserver's plug-ins
    admission_off: tuple[str, ...] = ()
    # controllers run too (`paddock up`), or the server alone (`paddock apiserver`)
    controllers: bool = True
    # the server makes no Node and no ServiceAccounts by itself
    bare: bool = False
    # what becomes of Pods and of what is made of Pods: refused or stored
    workloads: str = "refused"
    machines: MachineSettings = MachineSettings()
    providers: ProviderProgramSettings = ProviderProgramSettings()
    audit: Audit = Audit()
    # where the web console listens; empty: nowhere
    ui: str = ""
    # seconds that open requests get at the end
    drain_seconds: float = 10.0


def parse_listen(text: str, default: int = DEFAULT_PORT) -> tuple[str, int]:
    """`ADDRESS`, `:PORT` or `ADDRESS:PORT`; IPv6 addresses with a port stand in brackets. `default` is the port of an address alone."""
    host, colon, port = text.rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        host, port = text, str(default)
    if not port.isdecimal() or int(port) > 65535:
        raise Terminal(
            f"{text!r} is not an address to listen on", fix=f"write ADDRESS:PORT, such as 127.0.0.1:{default} or [::1]:{default}"
        )
    return host.strip("[]") or "127.0.0.1", int(port)
