"""Series about machines, disks and the host, under KubeVirt's and CDI's names (docs/spec/kubevirt.md 8). Pure."""
