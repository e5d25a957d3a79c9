"""The driver for VMware vSphere: machines of a vCenter or an ESXi host, through pyVmomi."""
