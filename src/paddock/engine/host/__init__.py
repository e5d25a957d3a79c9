"""The abilities of this host: QEMU, accelerators, firmware, memory, CPUs. `facts.collect` reads them once, when the program starts."""
