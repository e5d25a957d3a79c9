"""What is seen of machines, disks and the host, as series of KubeVirt's and CDI's names (docs/spec/kubevirt.md 8). Pure."""
