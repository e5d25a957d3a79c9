"""`paddock move`: a machine with its disks goes from one server to another (docs/design/0023-move.md)."""
