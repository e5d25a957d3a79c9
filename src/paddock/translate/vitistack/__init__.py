"""Vitistack's machines to KubeVirt and back (docs/spec/vitistack.md section 2). Pure."""

from paddock.translate.vitistack.backward import from_kubevirt
from paddock.translate.vitistack.forward import to_kubevirt
from paddock.translate.vitistack.ownwriting import to_own
from paddock.translate.vitistack.resolved import unmet

__all__ = ["from_kubevirt", "to_kubevirt", "to_own", "unmet"]
