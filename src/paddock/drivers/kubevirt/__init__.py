"""The kubevirt driver: machines as KubeVirt's objects on any Kubernetes API."""
