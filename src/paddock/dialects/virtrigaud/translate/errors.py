"""The errors that keep a machine from being translated. `error_type` is the reason of its condition."""

from collections.abc import Sequence
from typing import ClassVar

from paddock.base.errors import PaddockError, Terminal, Transient
from paddock.kubernetes.schema.finding import Path, format_path


class UntranslatableVirtualMachine(PaddockError):
    """A machine that cannot be translated as things are; `path` is the place in the machine that says so."""

    error_type: ClassVar[str]

    def __init__(self, what: str, *, path: Path, why: str = "", fix: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.path = path


class MissingReference(UntranslatableVirtualMachine, Transient):
    """The machine names an object that is not there. It can be translated once the object exists."""

    error_type = "WaitingForDependencies"

    def __init__(self, kind: str, namespace: str, name: str, path: Path) -> None:
        what = f'{kind} "{name}" not found in namespace {namespace}'
        super().__init__(what, path=path, fix=f"create it or correct {format_path(path)}")
        self.kind = kind
        self.namespace = namespace
        self.name = name


class MissingReferences(UntranslatableVirtualMachine, Transient):
    """Several objects are not there."""

    error_type = "WaitingForDependencies"

    def __init__(self, missing: Sequence[MissingReference]) -> None:
        whats = "; ".join(each.what for each in missing)
        super().__init__(whats, path=missing[0].path, fix="create them or correct the references")
        self.missing = tuple(missing)


class NothingToBoot(UntranslatableVirtualMachine, Terminal):
    """The machine has neither an image nor an imported disk."""

    error_type = "ValidationError"

    def __init__(self, name: str) -> None:
        what = f'VirtualMachine "{name}" has nothing to boot from'
        super().__init__(what, path=("spec", "imageRef"), fix="give imageRef or importedDisk")


class EncryptionRequired(UntranslatableVirtualMachine, Terminal):
    """The class refuses machines that are not encrypted."""

    error_type = "UnsupportedByProvider"

    def __init__(self, machine: str, vmclass: str) -> None:
        what = f'VirtualMachine "{machine}" cannot run on KubeVirt'
        super().__init__(
            what,
            path=("spec", "classRef"),
            why=f'VMClass "{vmclass}" requires encryption (securityProfile.encryptionPolicy.requireEncryption)',
            fix="choose another class, or keep the disks in an encrypted StorageClass and switch requireEncryption off",
        )
