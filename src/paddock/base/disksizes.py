"""The largest size of a disk. Its file format sets it, so no host and no configuration makes it larger."""

_CLUSTER = 64 << 10
_ENTRY = 8
# QEMU reads an L1 table of at most 32 MiB. An entry names an L2 table, which is one cluster and names as many clusters as it has entries.
_LARGEST_L1 = 32 << 20
LARGEST = _LARGEST_L1 // _ENTRY * (_CLUSTER // _ENTRY) * _CLUSTER
