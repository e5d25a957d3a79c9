"""Kubeconfigs, as kubectl reads them: found, merged, a context chosen, every form of authentication.

Of several files (KUBECONFIG is a list) the first that names a cluster, user or context decides about it, and missing files are
passed over. Paths in a file are relative to its own folder.
"""

import base64
import binascii
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from paddock.base.clock import Clock
from paddock.kubernetes.client import incluster
from paddock.kubernetes.client.access import Access, ClientCertificate, Credential, CredentialProvider, StaticCredential, bearer
from paddock.kubernetes.client.certificatefiles import CertificateFiles
from paddock.kubernetes.client.errors import BadAccess
from paddock.kubernetes.client.execplugin import ExecConfig, ExecPlugin
from paddock.kubernetes.client.tokenfile import TokenFile
from paddock.kubernetes.client.transport import Headers

_EXEC_EXTENSION = "client.authentication.k8s.io/exec"


class _Extension(msgspec.Struct, frozen=True):
    name: str = ""
    extension: Any = None


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    """The address and CA of a server."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    extensions: list[_Extension] | None = None


class KubeconfigUser(msgspec.Struct, frozen=True, rename="kebab"):
    """The credentials of a user."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec_: ExecConfig | None = msgspec.field(default=None, name="exec")
    auth_provider: Any = None
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None


class KubeconfigContext(msgspec.Struct, frozen=True):
    """A user at a cluster, in a namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: Cluster | None = None


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: KubeconfigUser | None = None


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: KubeconfigContext | None = None


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


class Kubeconfig:
    """The files of a kubeconfig, merged."""

    def __init__(self) -> None:
        self.clusters: dict[str, tuple[Cluster, Path]] = {}
        self.users: dict[str, tuple[KubeconfigUser, Path]] = {}
        self.contexts: dict[str, KubeconfigContext] = {}
        self.current = ""

    def add(self, file: _File, folder: Path) -> None:
        """Take what is not there yet."""
        for cluster in file.clusters or ():
            self.clusters.setdefault(cluster.name, (cluster.cluster or Cluster(), folder))
        for user in file.users or ():
            self.users.setdefault(user.name, (user.user or KubeconfigUser(), folder))
        for context in file.contexts or ():
            self.contexts.setdefault(context.name, context.context or KubeconfigContext())
        self.current = self.current or file.current_context or ""


def paths(environ: Mapping[str, str], explicit: Path | None = None) -> tuple[Path, ...]:
    """The files that kubectl would read."""
    if explicit is not None:
        return (explicit,)
    listed = tuple(Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part)
    return listed or (Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config",)


def read(files: Sequence[Path], *, required: bool = False) -> Kubeconfig:
    """The files, merged; with `required` each must be there."""
    config = Kubeconfig()
    for path in files:
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            if required:
                raise BadAccess(f"there is no kubeconfig {path}") from None
            continue
        except OSError as error:
            raise BadAccess(f"cannot read the kubeconfig {path}", why=str(error)) from error
        config.add(_parse(text, path), path.absolute().parent)
    return config


def parse(text: bytes, name: str) -> Kubeconfig:
    """A kubeconfig that is no file; its relative paths lead nowhere."""
    config = Kubeconfig()
    config.add(_parse(text, Path(name)), Path(os.devnull))
    return config


def _parse(text: bytes, path: Path) -> _File:
    try:
        return msgspec.convert(yaml.load(text, yaml.CSafeLoader) or {}, _File)
    except (yaml.YAMLError, msgspec.MsgspecError) as error:
        raise BadAccess(f"cannot read the kubeconfig {path}", why=str(error)) from error


class ChosenAccess(NamedTuple):
    """An access, and where it comes from, for people."""

    access: Access
    source: str


def find(
    environ: Mapping[str, str], clock: Clock, *, explicit: Path | None = None, context: str = "", local: Iterable[Path] = ()
) -> Access:
    """Return the access that `choose` finds."""
    return choose(environ, clock, explicit=explicit, context=context, local=local).access


def choose(
    environ: Mapping[str, str], clock: Clock, *, explicit: Path | None = None, context: str = "", local: Iterable[Path] = ()
) -> ChosenAccess:
    """Return the access that is meant: a kubeconfig where there is one, else the Pod's own.

    `local` are the kubeconfigs of servers of this host. The first of them comes before `~/.kube/config`, and after everything that the
    caller or the environment names.
    """
    files = paths(environ, explicit)
    if explicit is None and not context and not environ.get("KUBECONFIG"):
        files = next(((path,) for path in local), files)
    if explicit is None and not context and not any(path.exists() for path in files) and incluster.is_inside(environ):
        return ChosenAccess(incluster.load(environ, clock), "the Pod's ServiceAccount")
    config = read(files, required=explicit is not None)
    found = access(config, clock, context=context)
    return ChosenAccess(found, f"the context {context or config.current} of {os.pathsep.join(map(str, files))}")


def access(config: Kubeconfig, clock: Clock, *, context: str = "") -> Access:
    """Return the access that a context gives; the default is the current context."""
    wanted = context or config.current
    if not wanted:
        raise BadAccess("the kubeconfig names no current context", fix=_choices("choose one of", config.contexts))
    found = config.contexts.get(wanted)
    if found is None:
        raise BadAccess(f"the kubeconfig has no context {wanted!r}", fix=_choices("choose one of", config.contexts))
    if found.cluster not in config.clusters:
        raise BadAccess(f"the context {wanted!r} is of a cluster {found.cluster!r} that the kubeconfig lacks")
    if found.user and found.user not in config.users:
        raise BadAccess(f"the context {wanted!r} is of a user {found.user!r} that the kubeconfig lacks")
    cluster, folder = config.clusters[found.cluster]
    user, user_folder = config.users.get(found.user, (KubeconfigUser(), folder))
    return _access(cluster, folder, _credentials(user, user_folder, cluster, folder, clock), found.namespace or "default")


def _choices(text: str, names: Iterable[str]) -> str:
    return f"{text} {', '.join(sorted(names))}" if names else ""


def _access(cluster: Cluster, folder: Path, credentials: CredentialProvider, namespace: str) -> Access:
    server = cluster.server or "http://localhost:8080"
    authority = _content("certificate-authority", cluster.certificate_authority_data, cluster.certificate_authority, folder)
    if cluster.insecure_skip_tls_verify and authority:
        raise BadAccess("the kubeconfig gives an authority to trust and insecure-skip-tls-verify", fix="take one of them out")
    return Access(
        server=server if "://" in server else f"https://{server}",
        authority=authority,
        tls_name=cluster.tls_server_name,
        insecure=cluster.insecure_skip_tls_verify,
        proxy=cluster.proxy_url,
        credentials=credentials,
        namespace=namespace,
    )


def _content(name: str, data: str, file: str, folder: Path) -> bytes:
    """Return inline content, otherwise the content of a file."""
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise BadAccess(f"{name}-data of the kubeconfig is no base64", why=str(error)) from error
    if not file:
        return b""
    try:
        return (folder / file).read_bytes()
    except OSError as error:
        raise BadAccess(f"cannot read the {name} {folder / file} of the kubeconfig", why=str(error)) from error


def _credentials(user: KubeconfigUser, folder: Path, cluster: Cluster, cluster_folder: Path, clock: Clock) -> CredentialProvider:
    """The form of authentication that a user has; where there are several, in the order that kubectl takes them."""
    if user.auth_provider is not None:
        raise BadAccess(
            "the kubeconfig uses an auth-provider",
            why="Kubernetes has taken these out (1.26)",
            fix="use the provider's exec plugin, such as gke-gcloud-auth-plugin or kubelogin",
        )
    acting = _impersonation(user)
    certificate = _certificate(user, folder)
    if user.token_file:
        return TokenFile(folder / user.token_file, clock, acting, certificate)
    if user.token:
        return StaticCredential(Credential((*bearer(user.token).headers, *acting), certificate))
    if user.username:
        pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        return StaticCredential(Credential((("authorization", f"Basic {pair}"), *acting), certificate))
    if user.exec_ is not None:
        return ExecPlugin(user.exec_, clock, cluster=_cluster_info(cluster, cluster_folder), folder=folder, extra=acting)
    in_files = user.client_certificate and user.client_key and not user.client_certificate_data and not user.client_key_data
    if in_files:
        return CertificateFiles(folder / user.client_certificate, folder / user.client_key, clock, acting)
    return StaticCredential(Credential(acting, certificate))


def _certificate(user: KubeconfigUser, folder: Path) -> ClientCertificate | None:
    certificate = _content("client-certificate", user.client_certificate_data, user.client_certificate, folder)
    key = _content("client-key", user.client_key_data, user.client_key, folder)
    if bool(certificate) != bool(key):
        raise BadAccess(f"the kubeconfig gives a client {'certificate' if certificate else 'key'} alone", fix="give both")
    return ClientCertificate(certificate, key) if certificate else None


def _impersonation(user: KubeconfigUser) -> Headers:
    if not user.as_:
        if user.as_groups or user.as_user_extra or user.as_uid:
            raise BadAccess("the kubeconfig impersonates groups and no user", fix='say who with "as"')
        return ()
    headers = [("impersonate-user", user.as_)]
    if user.as_uid:
        headers.append(("impersonate-uid", user.as_uid))
    headers += [("impersonate-group", group) for group in user.as_groups or ()]
    headers += [(f"impersonate-extra-{name}", value) for name, values in (user.as_user_extra or {}).items() for value in values]
    return tuple(headers)


def _cluster_info(cluster: Cluster, folder: Path) -> dict[str, Any]:
    """Return the cluster information for an exec plugin that requests it."""
    authority = _content("certificate-authority", cluster.certificate_authority_data, cluster.certificate_authority, folder)
    pairs = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "proxy-url": cluster.proxy_url,
        "config": next((each.extension for each in cluster.extensions or () if each.name == _EXEC_EXTENSION), None),
    }
    return {name: value for name, value in pairs.items() if value}
