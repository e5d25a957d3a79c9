"""KubeVirt and CDI: machines, pools, snapshots, disks and their images (docs/spec/kubevirt.md). The hub of all translations."""
