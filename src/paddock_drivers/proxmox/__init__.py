"""The driver for Proxmox VE: machines on the nodes of a cluster, over its HTTP API.

`api` speaks to the cluster, `config` and `properties` read what it says of a machine; the other modules carry out the contract's calls.
"""
