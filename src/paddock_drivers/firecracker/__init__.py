"""Machines as Firecracker processes of this host, jailed where that can be (docs/design/0019-firecracker.md)."""
