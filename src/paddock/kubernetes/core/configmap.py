"""`v1 ConfigMap`."""

import base64
from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Kind, rule, transition

MOST_BYTES = 1024 * 1024


class ConfigMap(Resource):
    """Small values that everybody may read: certificates of authorities, files for a machine's disk."""

    data: Annotated[dict[str, str] | None, Field("The values, as text.", key_format="data-key")] = None
    binaryData: Annotated[
        dict[str, Annotated[str, Field("Base64.")]] | None,
        Field("More values, base64.", key_format="data-key"),
    ] = None
    immutable: Annotated[bool | None, Field("Whether the values can no longer be changed.")] = None


def values(config_map: ConfigMap) -> dict[str, bytes]:
    """Return the values of a ConfigMap; values that are not base64 are left out."""
    found = {key: text.encode() for key, text in (config_map.data or {}).items()}
    for key, text in (config_map.binaryData or {}).items():
        try:
            found[key] = base64.b64decode(text, validate=True)
        except ValueError:
            continue
    return found


@rule("core/configmap-data")
def values_are_readable(config: ConfigMap, settings: AdmissionSettings) -> Iterator[Finding]:
    """`binaryData` is base64, no key stands in both maps, and all values together are at most 1 MiB."""
    size = sum(len(value.encode()) for value in (config.data or {}).values())
    for key, text in (config.binaryData or {}).items():
        try:
            size += len(base64.b64decode("".join(text.split()), validate=True))
        except ValueError:
            yield finding.secret_invalid(("binaryData", key), "not base64; text belongs in data", "core/configmap-data")
        if key in (config.data or {}):
            yield finding.invalid(("binaryData", key), key, "the key stands in data too", "core/configmap-data")
    if size > MOST_BYTES:
        yield finding.too_long(("data",), MOST_BYTES, "core/configmap-data", "bytes")


@transition("core/configmap-change")
def immutable_values_stay(old: ConfigMap, new: ConfigMap, settings: AdmissionSettings) -> Iterator[Finding]:
    """The values of an immutable ConfigMap do not change."""
    if not old.immutable:
        return
    for name in ("immutable", "data", "binaryData"):
        if (getattr(old, name) or None) != (getattr(new, name) or None):
            yield finding.forbidden((name,), "field is immutable when `immutable` is set", "core/configmap-change")


KINDS = (
    Kind(
        group="",
        kind="ConfigMap",
        plural="configmaps",
        singular="configmap",
        short_names=("cm",),
        cls=ConfigMap,
        dialect="core",
        columns=(AGE,),
        status=False,
        builtin=True,
        rules=(values_are_readable,),
        transitions=(immutable_values_stay,),
    ),
)
