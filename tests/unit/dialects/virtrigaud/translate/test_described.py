"""The translation of a machine that a provider's request describes."""

import pytest

from paddock.contract.description import FirstDisk, MachineDescription
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import ClassPayload, ImagePayload
from paddock.dialects.virtrigaud.translate import (
    EncryptionRequired,
    MissingReference,
    MissingReferences,
    NothingToBoot,
    UntranslatableVirtualMachine,
    described,
)
from paddock.kubernetes.meta.rendering import Rendering

SECRET = MissingReference("Secret", "a", "b", ("spec",))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (EncryptionRequired("web", "secret"), ErrorKind.NOT_SUPPORTED),
        (NothingToBoot("web"), ErrorKind.INVALID_SPEC),
        (SECRET, ErrorKind.NOT_FOUND),
        (MissingReferences([SECRET]), ErrorKind.NOT_FOUND),
    ],
)
def test_each_error_has_its_kind(error: UntranslatableVirtualMachine, kind: ErrorKind, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(described, "to_kubevirt", refuse)
    machine = MachineDescription(name="web", hardware=ClassPayload(cpu=1, memory_mib=256), image=ImagePayload())
    with pytest.raises(ProviderError) as raised:
        described.translate(machine, FirstDisk(name="root"), "default", Rendering())
    found = raised.value
    assert (found.kind, found.what, found.why, found.fix) == (kind, error.what, error.why, error.fix) and found.__cause__ is error
