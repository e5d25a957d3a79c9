"""A kubeconfig among a Provider's credentials: the way to another host's server or to a cluster.

Whoever may write the Secret decides what stands in it, and the driver's process reads it. So it has to hold everything itself: a command
would be carried out by that process, and a path would show the process's own files to the server.
"""

from paddock.base.clock import Clock
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.access import Access
from paddock.kubernetes.client.errors import BadAccess
from paddock.kubernetes.client.kubeconfig import Cluster, KubeconfigUser

KUBECONFIG = "kubeconfig"


def read(text: bytes, clock: Clock) -> tuple[Access, str]:
    """Return the access that a kubeconfig gives, and the namespace of its context; "" if it names none. Raises `BadAccess`."""
    try:
        config = kubeconfig.parse(text, KUBECONFIG)
    except BadAccess:
        # The parser's words repeat parts of the text.
        raise BadAccess("the kubeconfig of the credentials cannot be read", fix="store a kubeconfig file under this key") from None
    context = config.contexts.get(config.current)
    for cluster, _ in config.clusters.values():
        _check("cluster", _outside(cluster))
    for user, _ in config.users.values():
        _check("user", _acting(user))
    return kubeconfig.access(config, clock), context.namespace if context is not None else ""


def _outside(cluster: Cluster) -> tuple[str, ...]:
    found = {"certificate-authority": cluster.certificate_authority, "proxy-url": cluster.proxy_url}
    return tuple(name for name, value in found.items() if value)


def _acting(user: KubeconfigUser) -> tuple[str, ...]:
    found = {
        "exec": user.exec_,
        "tokenFile": user.token_file,
        "client-certificate": user.client_certificate,
        "client-key": user.client_key,
    }
    return tuple(name for name, value in found.items() if value)


def _check(what: str, members: tuple[str, ...]) -> None:
    if members:
        raise BadAccess(
            f"the kubeconfig of the credentials cannot have {', '.join(members)} in a {what}",
            why="it has to hold everything itself",
            fix="inline it: `kubectl config view --flatten --raw`, with a token or a client certificate",
        )
