"""`v1 Secret`."""

import base64
from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Column, Kind, rule, transition

# What a Secret of each type has to hold: at least one member of each group.
_NEEDED: dict[str, tuple[tuple[str, ...], ...]] = {
    "kubernetes.io/tls": (("tls.crt",), ("tls.key",)),
    "kubernetes.io/basic-auth": (("username", "password"),),
    "kubernetes.io/ssh-auth": (("ssh-privatekey",),),
    "kubernetes.io/dockerconfigjson": ((".dockerconfigjson",),),
    "kubernetes.io/dockercfg": ((".dockercfg",),),
}
MOST_BYTES = 1024 * 1024


class Secret(Resource):
    """Small values that not everybody may read: passwords, keys, certificates, cloud-init documents."""

    type: Annotated[str | None, Field("What is in it; default: Opaque.", max_length=253)] = None
    data: Annotated[
        dict[str, Annotated[str, Field("Base64.", secret=True)]] | None,
        Field("The values, base64.", key_format="data-key", secret=True),
    ] = None
    stringData: Annotated[
        dict[str, Annotated[str, Field("Plain text.", secret=True)]] | None,
        Field("More values as plain text; written over `data`, never read back.", key_format="data-key", secret=True),
    ] = None
    immutable: Annotated[bool | None, Field("Whether the values can no longer be changed.")] = None


def decoded(secret: Secret) -> dict[str, bytes]:
    """The values of a Secret, `stringData` over `data`; what is not base64 is left out."""
    values: dict[str, bytes] = {}
    for key, text in (secret.data or {}).items():
        value = _decode(text)
        if value is not None:
            values[key] = value
    values.update((key, text.encode()) for key, text in (secret.stringData or {}).items())
    return values


def _decode(text: str) -> bytes | None:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except ValueError:
        return None


@rule("core/secret-data")
def data_is_base64(secret: Secret, settings: AdmissionSettings) -> Iterator[Finding]:
    """The values of `data` are base64, and all values together are at most 1 MiB."""
    for key, text in (secret.data or {}).items():
        if _decode(text) is None:
            yield finding.secret_invalid(("data", key), "not base64; plain text belongs in stringData", "core/secret-data")
    if sum(map(len, decoded(secret).values())) > MOST_BYTES:
        yield finding.too_long(("data",), MOST_BYTES, "core/secret-data", "bytes")


@rule("core/secret-type")
def typed_secrets_are_complete(secret: Secret, settings: AdmissionSettings) -> Iterator[Finding]:
    """A Secret of one of the well-known types has the keys of that type."""
    given = {**(secret.data or {}), **(secret.stringData or {})}
    for group in _NEEDED.get(secret.type or "", ()):
        if not any(key in given for key in group):
            why = f"a Secret of type {secret.type} needs {' or '.join(group)}"
            yield finding.required(("data", group[0]), "core/secret-type", why)


@transition("core/secret-change")
def some_members_stay(old: Secret, new: Secret, settings: AdmissionSettings) -> Iterator[Finding]:
    """The type never changes, and the values of an immutable Secret do not."""
    if (old.type or "Opaque") != (new.type or "Opaque"):
        yield finding.invalid(("type",), new.type or "Opaque", "field is immutable", "core/secret-change")
    if not old.immutable:
        return
    if not new.immutable:
        yield finding.forbidden(("immutable",), "field is immutable when `immutable` is set", "core/secret-change")
    if decoded(old) != decoded(new):
        yield finding.forbidden(("data",), "field is immutable when `immutable` is set", "core/secret-change")


KINDS = (
    Kind(
        group="",
        kind="Secret",
        plural="secrets",
        singular="secret",
        cls=Secret,
        dialect="core",
        columns=(Column("Type", ".type"), AGE),
        status=False,
        builtin=True,
        rules=(data_is_base64, typed_secrets_are_complete),
        transitions=(some_members_stay,),
    ),
)
