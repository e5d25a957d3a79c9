"""One QEMU process per machine: what it is started with, how it is watched, changed and ended."""
