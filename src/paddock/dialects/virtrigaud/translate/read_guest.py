"""The data that a KubeVirt machine gives its guest: user data, a host name, network data."""

import base64
import dataclasses
import json

from paddock.contract.specs import LocalObjectReference
from paddock.dialects.virtrigaud.kinds import userdata
from paddock.dialects.virtrigaud.kinds.machine import CloudInitMetaData, CloudInitUserData, Ignition, MetaData, UserData
from paddock.dialects.virtrigaud.translate import marks
from paddock.dialects.virtrigaud.translate.guest import NETWORK_DATA, NOTHING_TO_SAY, USER_DATA, spoken_hostname
from paddock.dialects.virtrigaud.translate.reading import MachineReader, from_json, is_name
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubevirt.kinds.volumes import CloudInitSource as Content

IGNITION_ANNOTATION = "kubevirt.io/ignitiondata"


@dataclasses.dataclass(frozen=True)
class GuestReading:
    """The guest's data, and whether the result has all of it."""

    user_data: UserData | None
    meta_data: MetaData | None
    network_data: str | None
    # the user data is in the result, in this or another form
    whole: bool


def read(reading: MachineReader) -> GuestReading:
    """The documents of the machine."""
    cloud_init = reading.cloud_init
    content = cloud_init[1] if cloud_init is not None else None
    hostname = reading.instance.hostname
    meta_data = MetaData(cloudInit=CloudInitMetaData(inline=spoken_hostname(hostname))) if hostname else None
    network = _network(reading, content) if content is not None else None
    annotations = (reading.vm.spec.template.metadata.annotations if reading.vm.spec.template.metadata is not None else None) or {}
    if IGNITION_ANNOTATION in annotations and content is None:
        return GuestReading(UserData(ignition=Ignition(inline=annotations[IGNITION_ANNOTATION])), meta_data, network, whole=True)
    user_data, whole = _user(reading, content) if content is not None else (None, True)
    return GuestReading(user_data, meta_data, network, whole)


def _user(reading: MachineReader, content: Content) -> tuple[UserData | None, bool]:
    if content.userData is not None or content.userDataBase64 is not None:
        text = content.userData if content.userData is not None else _text(content.userDataBase64)
        return (None, False) if text is None else (_inline(text), True)
    name = content.secretRef.name if content.secretRef is not None else ""
    return _by_secret(reading, name) if name else (None, True)


def _inline(text: str) -> UserData | None:
    if text in ("", NOTHING_TO_SAY):
        return None
    return UserData(ignition=Ignition(inline=text)) if _is_ignition(text) else UserData(cloudInit=CloudInitUserData(inline=text))


def _is_ignition(text: str) -> bool:
    """Return whether a document is one of Ignition's: JSON with its version."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and isinstance(data.get("ignition"), dict)


def _by_secret(reading: MachineReader, name: str) -> tuple[UserData | None, bool]:
    """A Secret of ours tells what it was made from; another one is named as it is."""
    secret = reading.object_set.get(Secret, reading.namespace, name)
    value = decoded(secret).get(USER_DATA) if secret is not None else None
    text = _decoded(value) if value is not None else None
    ignition = text is not None and _is_ignition(text)
    if secret is not None and text is not None and (secret.metadata.labels or {}).get(marks.MACHINE):
        origin = from_json((secret.metadata.annotations or {}).get(marks.SECRET))
        origin_name = origin.get("name") if isinstance(origin, dict) else None
        if not isinstance(origin_name, str) or not is_name(origin_name):
            return _inline(text), True
        both = userdata.parts(text.encode())
        inline = _decoded(both[0]) if both is not None else None
        return _referring(origin_name, inline, ignition=ignition), True
    return (_referring(name, None, ignition=ignition), True) if is_name(name) else (None, False)


def _referring(name: str, inline: str | None, *, ignition: bool) -> UserData:
    ref = LocalObjectReference(name=name)
    if ignition:
        return UserData(ignition=Ignition(secretRef=ref))
    return UserData(cloudInit=CloudInitUserData(inline=inline, secretRef=ref))


def _network(reading: MachineReader, content: Content) -> str | None:
    if content.networkData is not None:
        return content.networkData
    if content.networkDataBase64 is not None:
        return _text(content.networkDataBase64)
    name = content.networkDataSecretRef.name if content.networkDataSecretRef is not None else ""
    secret = reading.object_set.get(Secret, reading.namespace, name) if name else None
    value = decoded(secret).get(NETWORK_DATA) if secret is not None else None
    return _decoded(value) if value is not None else None


def _text(encoded: str | None) -> str | None:
    try:
        return _decoded(base64.b64decode("".join((encoded or "").split()), validate=True))
    except ValueError:
        return None


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
