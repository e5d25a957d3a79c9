"""A VirtualMachineInstance and what was found for it, as a machine of the engine: `config.machine_config`. Pure."""
