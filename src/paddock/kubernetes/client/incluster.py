"""The way in that a Pod has: the ServiceAccount's files and the address in the environment."""

from collections.abc import Mapping
from pathlib import Path

from paddock.base.clock import Clock
from paddock.kubernetes.client.access import Access
from paddock.kubernetes.client.errors import BadAccess
from paddock.kubernetes.client.tokenfile import TokenFile

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_inside(environ: Mapping[str, str]) -> bool:
    """Return True if this process runs in a Pod with access to its cluster."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT"))


def load(environ: Mapping[str, str], clock: Clock, folder: Path = FOLDER) -> Access:
    """The access of this Pod."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise BadAccess(
            "this process runs in no cluster",
            why="KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set",
            fix="give a kubeconfig",
        )
    try:
        authority = (folder / "ca.crt").read_bytes()
        namespace = (folder / "namespace").read_text(encoding="utf-8").strip() if (folder / "namespace").exists() else "default"
    except (OSError, UnicodeDecodeError) as error:
        raise BadAccess("cannot read the ServiceAccount's files", why=str(error), fix="set automountServiceAccountToken") from error
    return Access(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        authority=authority,
        credentials=TokenFile(folder / "token", clock),
        namespace=namespace,
    )
