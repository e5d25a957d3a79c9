"""VirtualMachineInstanceReplicaSet: several equal instances (docs/spec/kubevirt.md 6)."""
