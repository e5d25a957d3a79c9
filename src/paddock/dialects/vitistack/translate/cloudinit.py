"""Cloud-init: which documents a machine has, and what carries them to the guest. And back."""

import base64

import msgspec

from paddock.dialects.vitistack.kinds.fields import MachineCloudInit as Source
from paddock.dialects.vitistack.kinds.fields import SecretRef
from paddock.dialects.vitistack.translate import documents
from paddock.dialects.vitistack.translate.documents import NETWORK_DATA_KEY, USER_DATA_KEY
from paddock.dialects.vitistack.translate.resolved import VitistackInputs
from paddock.kubernetes.core.secret import Secret, decoded
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.meta.translated import LossCollector
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.volumes import CloudInitSource, Volume, VolumeNameReference

# KubeVirt's limit for a document that stands in the machine itself.
INLINE_BYTES = 2048
# An empty document confuses guests.
NOTHING_TO_SAY = "#cloud-config"


class CloudInitDocument(msgspec.Struct, frozen=True):
    """A document: its text, or the Secret that has it under KubeVirt's key. `copied` ones come from another key."""

    text: bytes = b""
    secret: str = ""
    copied: bool = False

    @property
    def fits_inline(self) -> bool:
        """True if it may stand in the machine."""
        return not self.copied and len(self.text) <= INLINE_BYTES and _is_text(self.text)


def _is_text(document: bytes) -> bool:
    try:
        document.decode()
    except UnicodeDecodeError:
        return False
    return True


class CloudInitVolume(msgspec.Struct, frozen=True):
    """The volume for the guest, and the Secret that the machine then needs."""

    volume: CloudInitSource
    secret: Secret | None


def secret_name(machine_name: str) -> str:
    return f"{machine_name}-cloudinit"


def carry(resolved: VitistackInputs) -> CloudInitVolume | None:
    """The documents of a machine in the volume and perhaps in a Secret; None when the machine says nothing."""
    source = resolved.machine.spec.cloudInit
    if source is None:
        return None
    user, network = _user_data(source, resolved), _network_data(source, resolved)
    carried = [document for document in (user, network) if document is not None and not document.secret]
    if all(document.fits_inline for document in carried):
        return CloudInitVolume(_volume(user, network, own_secret=""), None)
    own = secret_name(resolved.name)
    return CloudInitVolume(_volume(user, network, own_secret=own), _own_secret(resolved.metadata(own), user, network))


def is_config_drive(resolved: VitistackInputs) -> bool:
    """Return whether the documents are on a disk of the type ConfigDrive."""
    source = resolved.machine.spec.cloudInit
    return source is not None and source.type == "configDrive"


def _user_data(source: Source, resolved: VitistackInputs) -> CloudInitDocument:
    if source.userData or source.userDataBase64:
        return CloudInitDocument(_text(source.userData, source.userDataBase64))
    return _referred(documents.user_data(source), resolved) or CloudInitDocument(NOTHING_TO_SAY.encode())


def _network_data(source: Source, resolved: VitistackInputs) -> CloudInitDocument | None:
    if source.networkData or source.networkDataBase64:
        return CloudInitDocument(_text(source.networkData, source.networkDataBase64))
    secret = resolved.secret
    if source.secretRef is None or secret is None or NETWORK_DATA_KEY not in decoded(secret):
        return _referred(documents.network_data(source), resolved)
    # The two stay together: user data that is copied takes this along.
    return (
        CloudInitDocument(secret=source.secretRef.name)
        if source.secretRef.key == USER_DATA_KEY
        else CloudInitDocument(decoded(secret)[NETWORK_DATA_KEY])
    )


def _text(plain: str | None, encoded: str | None) -> bytes:
    return plain.encode() if plain else base64.b64decode(encoded or "")


def _referred(reference: documents.DocumentReference | None, resolved: VitistackInputs) -> CloudInitDocument | None:
    if reference is None:
        return None
    if reference.is_direct:
        return CloudInitDocument(secret=reference.name)
    # What stands in a Secret, or is not there yet, does not go into the machine.
    value = resolved.documents.get(reference.kubevirt_key)
    return CloudInitDocument(value or b"", copied=reference.cls is Secret or value is None)


def _volume(user: CloudInitDocument, network: CloudInitDocument | None, *, own_secret: str) -> CloudInitSource:
    def inline(document: CloudInitDocument | None) -> str | None:
        return None if document is None or document.secret or own_secret else document.text.decode()

    def reference(document: CloudInitDocument | None) -> VolumeNameReference | None:
        name = document and (document.secret or own_secret)
        return VolumeNameReference(name=name) if name else None

    return CloudInitSource(
        userData=inline(user),
        secretRef=reference(user),
        networkData=inline(network),
        networkDataSecretRef=reference(network),
    )


def _own_secret(metadata: ObjectMeta, user: CloudInitDocument, network: CloudInitDocument | None) -> Secret | None:
    documents = {USER_DATA_KEY: user, NETWORK_DATA_KEY: network}
    data = {key: base64.b64encode(document.text).decode() for key, document in documents.items() if document is not None and document.text}
    return Secret(apiVersion="v1", kind="Secret", metadata=metadata, data=data) if data else None


class CloudInitReader(msgspec.Struct, frozen=True):
    """The volume of a KubeVirt machine that is being read, and what may be looked up for it."""

    volume: Volume
    path: Path
    namespace: str
    object_set: ObjectSet
    ledger: LossCollector

    @property
    def given(self) -> CloudInitSource:
        return self.volume.cloudInitNoCloud or self.volume.cloudInitConfigDrive or CloudInitSource()

    def lose(self, member: str, value: str, why: str, instead: str) -> None:
        """Note a loss; documents themselves are never repeated."""
        self.ledger.lose((*self.path, member), value, why, instead)


def read(reading: CloudInitReader) -> Source:
    """Return the machine's source of the same documents."""
    if reading.volume.cloudInitConfigDrive is not None:
        reading.lose(
            "cloudInitConfigDrive", "(documents)", "a Machine's cloud-init disk is of the type NoCloud", "the documents are on such a disk"
        )
    given = reading.given
    user = given.userData or _read_base64(reading, "userDataBase64", given.userDataBase64)
    if user is None and given.secretRef is not None:
        return Source(secretRef=SecretRef(name=given.secretRef.name), networkData=_read_network(reading, beside=given.secretRef.name))
    network = _read_network(reading, beside="")
    return Source(userData=None if user == NOTHING_TO_SAY else user, networkData=network)


def _read_network(reading: CloudInitReader, *, beside: str) -> str | None:
    """Network data as text; None when the Secret named `beside` has it."""
    given = reading.given
    if given.networkData or given.networkDataBase64:
        return given.networkData or _read_base64(reading, "networkDataBase64", given.networkDataBase64)
    if given.networkDataSecretRef is None or given.networkDataSecretRef.name == beside:
        return None
    name = given.networkDataSecretRef.name
    secret = reading.object_set.get(Secret, reading.namespace, name)
    value = decoded(secret).get(NETWORK_DATA_KEY) if secret else None
    if value is None:
        why = "a Machine refers to network data only beside its user data, and the Secret is not in the input"
        reading.lose("networkDataSecretRef", name, why, "the guest gets no network data")
        return None
    return _as_text(reading, "networkDataSecretRef", value)


def _read_base64(reading: CloudInitReader, member: str, text: str | None) -> str | None:
    if not text:
        return None
    try:
        return _as_text(reading, member, base64.b64decode(text, validate=True))
    except ValueError:
        reading.lose(member, "(document)", "it is not base64", "the guest does not get it")
        return None


def _as_text(reading: CloudInitReader, member: str, value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        reading.lose(member, "(document)", "it is not text", "the guest does not get it")
        return None
