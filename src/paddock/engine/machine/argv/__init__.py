"""A `MachineConfig` as a QEMU command line: `command.command`, and by QMP what is plugged in later: `hotplug`. Pure."""
