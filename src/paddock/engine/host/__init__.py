"""What this host can do: QEMU, accelerators, firmware, memory, CPUs. `facts.collect` looks once, when the program starts."""
