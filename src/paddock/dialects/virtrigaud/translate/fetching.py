"""The fetching of the root disk's image: the source of its DataVolume, and the Secret that it needs.

CDI reads credentials under names of its own, so a Secret that has them under other names is copied; the copy names its original.
"""

import base64
import dataclasses
from collections.abc import Mapping

import msgspec

from paddock.contract.description import NOT_COMPARED
from paddock.contract.specs import BasicAuth, BearerToken, ClientCert, HTTPImageSource, RegistryImageSource
from paddock.dialects.virtrigaud.translate import marks
from paddock.dialects.virtrigaud.translate.account import Account
from paddock.dialects.virtrigaud.translate.resolved import VirtrigaudInputs
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.datavolume import CertConfig, CertificateReference, DataVolumeSource, HttpSource, NameReference, RegistrySource

USER, PASSWORD = "accessKeyId", "secretKey"
CERTIFICATE, KEY = "tls.crt", "tls.key"
HEADER = "authorization"
_DOCKER = ".dockerconfigjson"
_DIGITS = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}


@dataclasses.dataclass(frozen=True)
class FetchedSource:
    """The source of the root disk, and the Secrets it needs."""

    source: DataVolumeSource
    secrets: tuple[Secret, ...] = ()


def by_http(resolved: VirtrigaudInputs, account: Account, block: HTTPImageSource) -> FetchedSource:
    """An image behind a URL, with headers, checksum and a way to log in."""
    path: Path = ("source", "http")
    account.took(*path, "url")
    account.took(*path, "headers")
    headers = [f"{name}: {value}" for name, value in (block.headers or {}).items()]
    source = HttpSource(
        url=block.url,
        extraHeaders=headers or None,
        checksum=checksum(resolved, account, (*path, "checksum"), block.checksum, block.checksumType),
    )
    given = block.authentication
    if given is None:
        return FetchedSource(DataVolumeSource(http=source))
    path = (*path, "authentication")
    if given.basicAuth is not None:
        source, secrets = _basic(resolved, account, path, given.basicAuth, source)
    elif given.bearer is not None:
        source, secrets = _bearer(resolved, account, path, given.bearer, source)
    elif given.clientCert is not None:
        source, secrets = _certificate(resolved, account, path, given.clientCert, source)
    else:
        secrets = ()
    return FetchedSource(DataVolumeSource(http=source), secrets)


def checksum(resolved: VirtrigaudInputs, account: Account, path: Path, value: str | None, kind: str) -> str | None:
    """`type:digits`, when the image is to be compared with it and it is one."""
    if value is None:
        return None
    prepare = resolved.image.spec.prepare if resolved.image is not None else None
    if prepare is not None and not prepare.validateChecksum:
        account.lose(path, value, NOT_COMPARED, "the image is not compared with it")
        return None
    digits = value.removeprefix(f"{kind}:")
    if len(digits) != _DIGITS[kind] or not set(digits) <= set("0123456789abcdefABCDEF"):
        account.lose(path, value, f"it is no {kind} checksum", "the image is not compared with it")
        return None
    account.took(*path)
    account.took(*path[:-1], "checksumType")
    return f"{kind}:{digits}"


def _values(resolved: VirtrigaudInputs, name: str) -> dict[str, bytes] | None:
    """The values of a Secret beside the image. The machine says no more than the name of the image."""
    assert resolved.image is not None
    return resolved.secret(namespace_of(resolved.image), name, ("spec", "imageRef", "name"))


def _is_here(resolved: VirtrigaudInputs) -> bool:
    return resolved.image is not None and namespace_of(resolved.image) == resolved.namespace


def _absent(account: Account, path: Path, name: str) -> None:
    why = f'Secret "{name}" is not among the objects'
    account.lose((*path, "secretRef", "name"), name, why, f"a Secret of this name has to have {USER} and {PASSWORD}")


def _took_login(account: Account, path: Path, *keys: str) -> None:
    account.took(*path, "secretRef", "name")
    for key in keys:
        account.took(*path, key)


def _basic(
    resolved: VirtrigaudInputs, account: Account, path: Path, basic_auth: BasicAuth, source: HttpSource
) -> tuple[HttpSource, tuple[Secret, ...]]:
    path, name = (*path, "basicAuth"), basic_auth.secretRef.name
    values = _values(resolved, name)
    if values is None:
        _absent(account, path, name)
        return msgspec.structs.replace(source, secretRef=name), ()
    _took_login(account, path, "usernameKey", "passwordKey")
    if _is_here(resolved) and (basic_auth.usernameKey, basic_auth.passwordKey) == (USER, PASSWORD):
        return msgspec.structs.replace(source, secretRef=name), ()
    keys = {"usernameKey": basic_auth.usernameKey, "passwordKey": basic_auth.passwordKey}
    taken = {USER: values.get(basic_auth.usernameKey, b""), PASSWORD: values.get(basic_auth.passwordKey, b"")}
    secret = _copy(resolved, name, {"basicAuth": keys}, taken)
    return msgspec.structs.replace(source, secretRef=secret.metadata.name), (secret,)


def _bearer(
    resolved: VirtrigaudInputs, account: Account, path: Path, bearer_token: BearerToken, source: HttpSource
) -> tuple[HttpSource, tuple[Secret, ...]]:
    path, name = (*path, "bearer"), bearer_token.secretRef.name
    values = _values(resolved, name)
    if values is None:
        instead = "the image is fetched without it; name a Secret with the whole header in secretExtraHeaders"
        account.lose(path, name, f'Secret "{name}" is not among the objects', instead)
        return source, ()
    _took_login(account, path, "tokenKey")
    header = b"Authorization: Bearer " + values.get(bearer_token.tokenKey, b"").strip()
    secret = _copy(resolved, name, {"bearer": {"tokenKey": bearer_token.tokenKey}}, {HEADER: header})
    return msgspec.structs.replace(source, secretExtraHeaders=[secret.metadata.name]), (secret,)


def _certificate(
    resolved: VirtrigaudInputs, account: Account, path: Path, client_cert: ClientCert, source: HttpSource
) -> tuple[HttpSource, tuple[Secret, ...]]:
    path, name = (*path, "clientCert"), client_cert.secretRef.name
    if not source.url.startswith("https://"):
        account.lose(path, name, "a client certificate is shown to an https server only", "the image is fetched without it")
        return source, ()
    secrets: tuple[Secret, ...] = ()
    if not _is_here(resolved) or (client_cert.certKey, client_cert.keyKey) != (CERTIFICATE, KEY):
        values = _values(resolved, name)
        if values is None:
            instead = f"a Secret of this name has to have {CERTIFICATE} and {KEY}"
            account.lose((*path, "secretRef", "name"), name, f'Secret "{name}" is not among the objects', instead)
        else:
            keys = {"certKey": client_cert.certKey, "keyKey": client_cert.keyKey}
            taken = {CERTIFICATE: values.get(client_cert.certKey, b""), KEY: values.get(client_cert.keyKey, b"")}
            secrets = (_copy(resolved, name, {"clientCert": keys}, taken),)
            name = secrets[0].metadata.name
            _took_login(account, path, "certKey", "keyKey")
    else:
        _took_login(account, path, "certKey", "keyKey")
    part = CertificateReference(secretRef=NameReference(name=name))
    return msgspec.structs.replace(source, certConfig=CertConfig(cert=part, key=part)), secrets


def by_registry(resolved: VirtrigaudInputs, account: Account, block: RegistryImageSource) -> FetchedSource:
    """An image in a registry; a pull Secret becomes the user and the password that it has for the registry."""
    path: Path = ("source", "registry")
    account.took(*path, "image")
    # A short name with a digest looks like a user and a host.
    library = "docker.io/library/" if "/" not in block.image and "@" in block.image else ""
    source = RegistrySource(url=f"docker://{library}{block.image}")
    if block.pullSecretRef is None:
        return FetchedSource(DataVolumeSource(registry=source))
    path, name = (*path, "pullSecretRef"), block.pullSecretRef.name
    values = _values(resolved, name)
    if values is None:
        account.lose(path, name, f'Secret "{name}" is not among the objects', f"a Secret of this name has to have {USER} and {PASSWORD}")
        return FetchedSource(DataVolumeSource(registry=msgspec.structs.replace(source, secretRef=name)))
    account.took(*path, "name")
    if _is_here(resolved) and USER in values and PASSWORD in values:
        return FetchedSource(DataVolumeSource(registry=msgspec.structs.replace(source, secretRef=name)))
    login = _login(values, block.image.partition("/")[0])
    if login is None:
        account.lose(path, name, "the Secret has no user and password for this registry", "the image is pulled without a login")
        return FetchedSource(DataVolumeSource(registry=source))
    secret = _copy(resolved, name, {"pullSecretRef": {}}, login)
    return FetchedSource(DataVolumeSource(registry=msgspec.structs.replace(source, secretRef=secret.metadata.name)), (secret,))


def _login(values: Mapping[str, bytes], host: str) -> dict[str, bytes] | None:
    """User and password, as one of the usual kinds of Secret has them."""
    for user, password in ((USER, PASSWORD), ("username", "password")):
        if user in values and password in values:
            return {USER: values[user], PASSWORD: values[password]}
    try:
        auths = msgspec.json.decode(values.get(_DOCKER, b"{}"), type=dict[str, dict[str, dict[str, str]]]).get("auths", {})
    except msgspec.DecodeError:
        return None
    entry = next((auths[name] for name in (host, f"https://{host}", f"https://{host}/v1/", f"https://{host}/v2/") if name in auths), None)
    if entry is None:
        return None
    if "username" in entry and "password" in entry:
        return {USER: entry["username"].encode(), PASSWORD: entry["password"].encode()}
    try:
        name, colon, word = base64.b64decode(entry.get("auth", ""), validate=True).partition(b":")
    except ValueError:
        return None
    return {USER: name, PASSWORD: word} if colon else None


def _copy(resolved: VirtrigaudInputs, original: str, what: Mapping[str, Mapping[str, str]], values: Mapping[str, bytes]) -> Secret:
    """A Secret with values under CDI's names."""
    annotations = {marks.SECRET: marks.as_json({"name": original, **what})}
    return Secret(
        apiVersion="v1",
        kind="Secret",
        metadata=marks.meta(resolved.vm, marks.image_secret(resolved.name), resolved.rendering.product, annotations),
        type="Opaque",
        data={key: base64.b64encode(value).decode() for key, value in values.items()},
    )
