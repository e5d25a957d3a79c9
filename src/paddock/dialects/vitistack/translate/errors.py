"""The errors that keep a machine from being translated: a reference to a missing object, or a missing size.

Each error names its type as status, events and metrics do, the place in the machine, and the phase that the machine then has
(docs/spec/vitistack.md section 4.6). `Transient` ones end without an edit, when the missing object is made.
"""

from typing import ClassVar

from paddock.base.errors import PaddockError, Terminal, Transient
from paddock.kubernetes.schema.finding import Path, format_path


class UntranslatableMachine(PaddockError):
    """A machine that cannot be translated as things are."""

    error_type: ClassVar[str]
    phase: ClassVar[str] = "Pending"
    # What a translation without the missing object has in its place; empty when nothing is lost by it.
    instead = ""

    def __init__(self, what: str, *, name: str, path: Path, why: str = "", fix: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.name = name
        self.path = path


class TemplateNotFound(UntranslatableMachine, Terminal):
    """The template is not built in, and the namespace has none of this name."""

    error_type = "TemplateNotFound"
    phase = "Failed"

    def __init__(self, name: str, choices: str) -> None:
        super().__init__(f'template "{name}" not found', name=name, path=("spec", "template"), why=f"use {choices}")


class NetworkConfigurationNotFound(UntranslatableMachine, Transient):
    """A network card names a NetworkConfiguration that the namespace does not have."""

    error_type = "NetworkConfigurationNotFound"

    def __init__(self, name: str, path: Path, namespace: str) -> None:
        what = f'NetworkConfiguration "{name}" not found in namespace {namespace}'
        super().__init__(what, name=name, path=path, fix=f"create it or correct {format_path(path)}")
        self.instead = f"the card is attached to NetworkAttachmentDefinition {name}, which has to be there"


class StorageClassNotFound(UntranslatableMachine, Transient):
    """A disk names a StorageClass that does not exist, or needs the default and there is none."""

    error_type = "StorageClassNotFound"

    def __init__(self, name: str, path: Path, *, is_default: bool) -> None:
        if is_default and path[-1] != "storageClass":
            # The template, or the form of the machine, leaves no place to name one.
            what = "no default StorageClass"
            fix = 'annotate a class with storageclass.kubernetes.io/is-default-class: "true"'
        elif is_default:
            what = "no default StorageClass"
            fix = f'annotate a class with storageclass.kubernetes.io/is-default-class: "true" or name one in {format_path(path)}'
        else:
            what, fix = f'StorageClass "{name}" not found', f"create it or correct {format_path(path)}"
        super().__init__(what, name=name, path=path, fix=fix)


class DocumentNotFound(UntranslatableMachine, Transient):
    """The object with a document for cloud-init, or its key, is not there."""

    of_kind: ClassVar[str]

    def __init__(self, name: str, key: str, *, path: Path, namespace: str, lacks_key: bool, instead: str) -> None:
        at = format_path(path)
        if lacks_key:
            what, fix = f'{self.of_kind} "{name}" has no key "{key}"', f"add the key or correct {at}.key"
        else:
            what, fix = f'{self.of_kind} "{name}" not found in namespace {namespace}', f"create it or correct {at}.name"
        super().__init__(what, name=name, path=path, fix=fix)
        self.key = key
        self.instead = instead


class SecretNotFound(DocumentNotFound):
    """A Secret, or its key, is not there."""

    error_type = "SecretNotFound"
    of_kind = "Secret"


class ConfigMapNotFound(DocumentNotFound):
    """A ConfigMap, or its key, is not there."""

    error_type = "ConfigMapNotFound"
    of_kind = "ConfigMap"


class MachineClassNotFound(UntranslatableMachine, Transient):
    """A machine in Vitistack's own form names a class that is not there, or that machines may not use."""

    error_type = "MachineClassNotFound"

    def __init__(self, name: str, why: str, remedy: str, choices: str) -> None:
        what = f'MachineClass "{name}" {why}'
        super().__init__(what, name=name, path=("spec", "machineClass"), fix=f"{remedy}, or use {choices}")


class IncompleteMachine(UntranslatableMachine, Terminal):
    """Neither the machine nor its template gives a size that is needed."""

    error_type = "IncompleteMachine"
    phase = "Failed"

    def __init__(self, what: str, path: Path) -> None:
        super().__init__(what, name="", path=path, why="neither the machine nor its template gives it", fix=f"set {format_path(path)}")
