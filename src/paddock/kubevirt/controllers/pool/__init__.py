"""VirtualMachinePool: several machines made from one template (docs/spec/kubevirt.md 6)."""
