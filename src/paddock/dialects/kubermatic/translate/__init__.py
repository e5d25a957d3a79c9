"""Kubermatic's machines, pools and DataSources to and from what KubeVirt and CDI take (docs/spec/kubermatic.md section 2)."""

from paddock.dialects.kubermatic.translate.back import from_kubevirt
from paddock.dialects.kubermatic.translate.forward import to_kubevirt

__all__ = ["from_kubevirt", "to_kubevirt"]
