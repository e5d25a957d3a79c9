"""The environment of a Provider's program (docs/spec/virtrigaud.md 3.8): the variables that say what it looks after."""

from collections.abc import Sequence

from paddock.dialects.virtrigaud.kinds.provider import Provider, ProviderDefaults
from paddock.dialects.virtrigaud.plan.programs.transport import TransportChoice
from paddock.kubernetes.meta.pods import EnvVar
from paddock.kubernetes.meta.world import namespace_of

ALLOWED, INSECURE = "VIRTRIGAUD_PROVIDER_ALLOWED_SANS", "VIRTRIGAUD_PROVIDER_INSECURE"
# Hosts and networks of the program's own machine that it may download images from.
IMAGE_HOSTS = "PROVIDER_IMAGE_HOSTS"
# What a Provider may set for a child of the server: settings of drivers, and nothing that decides which code the process runs.
_OWN_PREFIXES = ("PROVIDER_", "LIBVIRT_", "PVE_", "VSPHERE_", "GOVMOMI_", "VIRTRIGAUD_")


def variables(provider: Provider, transport: TransportChoice, manager: str) -> dict[str, str]:
    """Return the variables, without the user's own. `manager` is the name that a client's certificate must have."""
    spec = provider.spec
    defaults = spec.defaults or ProviderDefaults()
    found = {
        "PROVIDER_TYPE": spec.type,
        "PROVIDER_ENDPOINT": spec.endpoint,
        "PROVIDER_NAMESPACE": namespace_of(provider),
        "PROVIDER_NAME": provider.metadata.name or "",
        "TLS_ENABLED": _word(transport.encrypted),
        "TLS_INSECURE_SKIP_VERIFY": _word(spec.insecureSkipVerify),
        "LOG_LEVEL": spec.runtime.logLevel,
        "LOG_FORMAT": spec.runtime.logFormat,
    }
    places = {
        "DATASTORE": defaults.datastore,
        "STORAGE_POD": defaults.storagePod,
        "CLUSTER": defaults.cluster,
        "FOLDER": defaults.folder,
        "RESOURCE_POOL": defaults.resourcePool,
        "NETWORK": defaults.network,
    }
    found |= {f"PROVIDER_DEFAULT_{name}": value for name, value in places.items() if value}
    if transport.encrypted:
        found[ALLOWED] = manager
    else:
        found[INSECURE] = "true"
    return found


def child_problem(env_vars: Sequence[EnvVar] | None, own: dict[str, str]) -> str:
    """Return why a Provider's variables cannot be given to a process on this host; empty if they can."""
    for each in env_vars or ():
        if each.valueFrom is not None:
            return f"spec.runtime.env {each.name}: valueFrom works in a cluster only; store the value in the credentials"
        if each.name in own:
            return f"spec.runtime.env {each.name}: Paddock sets this variable itself"
        if not each.name.startswith(_OWN_PREFIXES):
            return f"spec.runtime.env {each.name}: on this server, names begin with {', '.join(_OWN_PREFIXES)}"
    return ""


def _word(value: bool) -> str:
    return "true" if value else "false"
