"""The environment variables that Paddock reads. The man page and docs/reference/settings.md are made of these declarations."""

from collections.abc import Sequence
from typing import NamedTuple


class Variable(NamedTuple):
    """An environment variable and what it does."""

    name: str
    text: str


DIRECTORY = Variable("PADDOCK_DIR", "Directory of the server, in place of the default one")
HOST_DIRECTORY = Variable("PADDOCK_HOST_DIR", "Directory in which all servers of this host record the addresses and users they take")
TRACEBACK = Variable("PADDOCK_TRACEBACK", "Show where a defect of Paddock comes from")
KUBECONFIG = Variable("KUBECONFIG", "Kubeconfig of the server that commands use")
NO_COLOR = Variable("NO_COLOR", "No colours, whatever the value")

# Of every command.
COMMANDS: Sequence[Variable] = (
    KUBECONFIG,
    DIRECTORY,
    NO_COLOR,
    TRACEBACK,
    Variable("COLUMNS", "Width that tables are laid out for, in place of the terminal's"),
    Variable("TERM", "`dumb` or empty: no colours, and nothing is redrawn in place"),
    Variable("VISUAL", "Editor of `paddock edit`"),
    Variable("EDITOR", "Editor of `paddock edit` if VISUAL is not set (default: vi)"),
    Variable("DISPLAY", "X display; `paddock vnc` needs it or WAYLAND_DISPLAY for a viewer"),
    Variable("WAYLAND_DISPLAY", "Wayland display; `paddock vnc` needs it or DISPLAY for a viewer"),
    Variable("HTTPS_PROXY", "Proxy for the server, if its kubeconfig names none; lower case is allowed"),
    Variable("HTTP_PROXY", "The same for a server without TLS"),
    Variable("NO_PROXY", "Hosts, domains and networks that are reached without the proxy, separated by commas"),
    Variable("XDG_CACHE_HOME", "Parent of the cache of built guest images (default: ~/.cache)"),
    Variable("XDG_STATE_HOME", "Parent of a user's server directory and of the known hosts of `paddock ssh` (default: ~/.local/state)"),
)
# Of `paddock up` and `paddock apiserver`.
SERVER: Sequence[Variable] = (
    HOST_DIRECTORY,
    Variable("DOCKER_CONFIG", "Directory of Docker's config.json, with credentials for registries (default: ~/.docker)"),
    Variable("XDG_RUNTIME_DIR", "Parent of containers/auth.json, with credentials for registries (default: /run/containers/0)"),
    Variable("NOTIFY_SOCKET", "Socket of systemd that learns when the server is ready"),
    Variable("SUDO_USER", "User for whom `paddock doctor` checks access when it runs as root"),
)
# Of a program in a Pod of a cluster.
CLUSTER: Sequence[Variable] = (
    Variable("KUBERNETES_SERVICE_HOST", "Address of the API server, inside a Pod"),
    Variable("KUBERNETES_SERVICE_PORT", "Port of the API server, inside a Pod"),
)
# Of `paddock provider serve`, whatever its driver.
PROVIDER: Sequence[Variable] = (
    Variable("PROVIDER_TYPE", "Driver, if --type is absent"),
    Variable("PROVIDER_NAME", "Name of the Provider that the program serves"),
    Variable("PROVIDER_NAMESPACE", "Namespace of the Provider; for kubevirt: of the machines that it makes"),
    Variable("PROVIDER_ENDPOINT", "Address of the hypervisor: `spec.endpoint` of the Provider"),
    Variable("PROVIDER_IMAGE_HOSTS", "Hosts and networks of the program's own machine that images may come from, separated by commas"),
    Variable("PROVIDER_NFS_MOUNTS", "Directories where NFS exports are mounted, as SERVER:/EXPORT=DIR, separated by commas"),
    Variable("PROVIDER_DEFAULT_DATASTORE", "Storage of machines that name none; libvirt: a pool, proxmox: a storage, vsphere: a datastore"),
    Variable("PROVIDER_DEFAULT_NETWORK", "Network of interfaces that name none"),
    Variable("PROVIDER_DEFAULT_CLUSTER", "vsphere: cluster of machines that name none"),
    Variable("PROVIDER_DEFAULT_FOLDER", "vsphere: folder of machines that name none"),
    Variable("PROVIDER_DEFAULT_RESOURCE_POOL", "vsphere: resource pool of machines that name none"),
    Variable("PROVIDER_DEFAULT_STORAGE_POD", "vsphere: datastore cluster of machines that name no datastore"),
    Variable("TLS_ENABLED", "`true` if the Provider's connection is encrypted; set for images of other authors"),
    Variable("TLS_INSECURE_SKIP_VERIFY", "`true`: do not check the hypervisor's certificate or host key"),
    Variable("VIRTRIGAUD_PROVIDER_ALLOWED_SANS", "Names that a client's certificate must have, separated by commas, if --allow is absent"),
    Variable("VIRTRIGAUD_PROVIDER_INSECURE", "`true`: serve in plain text, as --insecure"),
    Variable("LOG_LEVEL", "Minimum log level, if --log-level is absent"),
    Variable("LOG_FORMAT", "Log format, if --log-format is absent"),
)
# Of single drivers.
DRIVERS: Sequence[Variable] = (
    Variable("LIBVIRT_URI", "libvirt: the hypervisor, if PROVIDER_ENDPOINT is empty (default: qemu:///system)"),
    Variable("LIBVIRT_CONSOLE_ADDRESS", "libvirt: address on which displays listen (default: 127.0.0.1)"),
    Variable("LIBVIRT_INSECURE_SKIP_HOST_KEY_VERIFICATION", "libvirt: `true` or `1`: do not check host keys"),
    Variable("PVE_CA_BUNDLE", "proxmox: file with the authority of the server's certificate"),
    Variable("PVE_INSECURE_SKIP_VERIFY", "proxmox: `true`: do not check the server's certificate"),
    Variable("PVE_NODE_SELECTOR", "proxmox: nodes that machines may be made on, separated by commas (default: all)"),
    Variable("PVE_NODE", "proxmox: the same, if PVE_NODE_SELECTOR is empty"),
    Variable("PVE_DEFAULT_STORAGE", "proxmox: storage of machines that name none, if PROVIDER_DEFAULT_DATASTORE is empty"),
    Variable("PVE_IMPORT_STORAGE", "proxmox: storage that images are downloaded to"),
    Variable("PVE_ISO_STORAGE", "proxmox: storage for the images of cloud-init data"),
    Variable("PVE_DEFAULT_BRIDGE", "proxmox: bridge of interfaces that name no network"),
    Variable("PVE_CPU_TYPE", "proxmox: processor model of new machines"),
    Variable("PVE_LINKED_CLONES", "proxmox: `true`: clone with shared disks where the storage can"),
    Variable("PROVIDER_FIRECRACKER", "firecracker: program (default: firecracker in PATH)"),
    Variable("PROVIDER_FIRECRACKER_JAILER", "firecracker: jailer for root (default: jailer in PATH); `none` uses none"),
    Variable(
        "PROVIDER_FIRECRACKER_DIRECTORY",
        "firecracker: directory of machines (default: /var/lib/paddock/firecracker for root, or ~/.local/state/paddock/firecracker)",
    ),
    Variable("PROVIDER_FIRECRACKER_KERNEL", "firecracker: kernel of machines that name none"),
    Variable("PROVIDER_FIRECRACKER_BOOT_ARGS", "firecracker: kernel arguments of machines that name none"),
    Variable("PROVIDER_FIRECRACKER_FILES", "firecracker: directories with images and kernels that machines may name, separated by colons"),
    Variable("PROVIDER_FIRECRACKER_NETWORKS", "firecracker: NAME=BRIDGE pairs, separated by commas (default: every bridge by its name)"),
    Variable("PROVIDER_FIRECRACKER_USERS", "firecracker: users that machines run as when the driver is root, as FIRST-LAST"),
    Variable(
        "PROVIDER_FIRECRACKER_SOURCES", "firecracker: hosts and networks of this machine that images may come from, separated by commas"
    ),
    Variable("VSPHERE_DATACENTER", "vsphere: datacenter of machines that name none"),
)
