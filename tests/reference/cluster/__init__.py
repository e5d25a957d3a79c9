"""A Kubernetes cluster with KubeVirt on one machine: the reference for what `paddock operator` makes of a real cluster."""
