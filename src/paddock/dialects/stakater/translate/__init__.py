"""Stakater's machine to and from KubeVirt (docs/spec/stakater.md section 2)."""

from paddock.dialects.stakater.translate.back import from_kubevirt
from paddock.dialects.stakater.translate.forward import to_kubevirt

__all__ = ["from_kubevirt", "to_kubevirt"]
