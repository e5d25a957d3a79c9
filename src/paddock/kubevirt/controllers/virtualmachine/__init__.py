"""VirtualMachine: run strategies, disks, restarts; one instance at most for each (docs/spec/kubevirt.md 2)."""
