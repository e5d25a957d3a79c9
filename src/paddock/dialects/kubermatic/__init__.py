"""Kubermatic Virtualization (docs/spec/kubermatic.md): KubeVirt's kinds, with three things that KubeVirt and CDI do not accept.

A DataSource may be an image behind a URL, a `sourceRef` may name its `apiGroup`, and a pool may be written at
`kubevirt.io/v1alpha1` with the hardware beside `runStrategy`. The fields and rules are KubeVirt's; here is what is Kubermatic's own.
"""

from paddock.kubernetes.schema.dialect import Dialect

GROUP = "virtualization.k8c.io"
DIALECT = Dialect(
    name="kubermatic",
    title="Kubermatic",
    group=GROUP,
    kinds={
        ("kubevirt.io", "VirtualMachinePool"): "pool",
        (GROUP, "Image"): "image",
    },
    translator="paddock.dialects.kubermatic.translate",
    # The kinds are KubeVirt's; the translator leaves alone what uses nothing of Kubermatic's.
    translated=(
        ("kubevirt.io", "VirtualMachine"),
        ("kubevirt.io", "VirtualMachinePool"),
        ("pool.kubevirt.io", "VirtualMachinePool"),
        ("cdi.kubevirt.io", "DataVolume"),
        ("cdi.kubevirt.io", "DataSource"),
    ),
    read_back=("VirtualMachine", "VirtualMachinePool"),
    extends_kubevirt=True,
    copies_data_sources=True,
    adapter="paddock.dialects.kubermatic.plan.adapter",
    effects="paddock.dialects.kubermatic.plan.effects",
    references="paddock.dialects.kubermatic.plan.referring",
    wiring="paddock.dialects.kubermatic.wiring",
    stored="datasources.cdi.kubevirt.io",
)
