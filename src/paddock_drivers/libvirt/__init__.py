"""The driver of type `libvirt`: machines as domains of a libvirtd, with QEMU.

`connection` reaches the daemon, `machines` finds domains and their owners, `definition` and `domainview` write and read their XML. The
storage half (`volumes`, `images`, `snapshots`, `clones`, `transfers`) keeps disks in pools; `storageport` is what both halves agree on.
"""
