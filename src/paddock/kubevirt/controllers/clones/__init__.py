"""VirtualMachineClones: a snapshot of a machine, and a restore of it under another name."""
