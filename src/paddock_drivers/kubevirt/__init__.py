"""The driver that keeps machines as KubeVirt objects, on a cluster or on Paddock's own server (docs/design/0017-provider-contract.md).

Pure: `booting`, `documents`, `observed`, `differences`, `customization`, `progress`, `identifiers`.
The others read and write the target through `cluster`.
"""
