"""A VirtualMachineInstance becomes a machine of the engine, and what the machine does becomes its status."""
