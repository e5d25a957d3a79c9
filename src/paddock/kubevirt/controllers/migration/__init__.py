"""VirtualMachineInstanceMigration: accepted, and failed with the reason that there is one host (docs/spec/kubevirt.md 2.10)."""
