"""The public keys of a machine in Vitistack's own form: a Secret, which the cloud-init disk brings to the guest."""

import base64
from collections.abc import Iterator

from paddock.dialects.vitistack.translate.cloudinit import is_config_drive
from paddock.dialects.vitistack.translate.resolved import VitistackInputs
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.schema.field import Empty
from paddock.kubevirt.kinds.access import AccessCredential, CredentialSource, KeyPropagation, SecretSource, SSHPublicKey


def secret_name(machine_name: str) -> str:
    """The Secret with the keys."""
    return f"{machine_name}-sshkeys"


def secrets(resolved: VitistackInputs) -> Iterator[Secret]:
    """Yield the Secret with the keys of a machine that has some."""
    given = resolved.machine.spec.sshKeys
    if given:
        data = {f"key{index}": base64.b64encode(text.strip().encode()).decode() for index, text in enumerate(given, start=1)}
        yield Secret(apiVersion="v1", kind="Secret", metadata=resolved.metadata(secret_name(resolved.name)), data=data)


def credentials(resolved: VitistackInputs) -> list[AccessCredential] | None:
    """The keys, as KubeVirt's machine refers to them."""
    if not resolved.machine.spec.sshKeys:
        return None
    way = KeyPropagation(configDrive=Empty()) if is_config_drive(resolved) else KeyPropagation(noCloud=Empty())
    source = CredentialSource(secret=SecretSource(secretName=secret_name(resolved.name)))
    return [AccessCredential(sshPublicKey=SSHPublicKey(source=source, propagationMethod=way))]
