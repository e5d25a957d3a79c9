"""Kubermatic Virtualization (docs/spec/kubermatic.md): KubeVirt's kinds, with three things that KubeVirt and CDI do not accept.

A DataSource may be an image behind a URL, a `sourceRef` may name its `apiGroup`, and a pool may be written at
`kubevirt.io/v1alpha1` with the hardware beside `runStrategy`. The fields and rules are KubeVirt's; here is what is Kubermatic's own.
"""
