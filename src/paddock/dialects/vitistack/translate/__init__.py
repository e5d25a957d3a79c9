"""Vitistack's machines to KubeVirt and back (docs/spec/vitistack.md section 2). Pure."""

from paddock.dialects.vitistack.translate.backward import from_kubevirt
from paddock.dialects.vitistack.translate.forward import to_kubevirt
from paddock.dialects.vitistack.translate.ownwriting import is_own, to_own
from paddock.dialects.vitistack.translate.resolved import unmet

__all__ = ["from_kubevirt", "is_own", "to_kubevirt", "to_own", "unmet"]
