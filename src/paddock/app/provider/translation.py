"""The translation for drivers that keep machines as KubeVirt objects. It is loaded with the first machine: other drivers need none."""

from collections.abc import Sequence
from importlib import import_module

from paddock.contract.description import DescriptionTranslator, FirstDisk, MachineDescription
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Translated


def translate(
    description: MachineDescription, boot: FirstDisk, namespace: str, rendering: Rendering, secrets: Sequence[Resource] = ()
) -> Translated[tuple[Resource, ...]]:
    """Return KubeVirt's objects of a machine, as VirtRigaud's dialect translates it."""
    translator: DescriptionTranslator = import_module("paddock.dialects.virtrigaud.translate.described").translate
    return translator(description, boot, namespace, rendering, secrets)
