"""VirtualMachineExports: what a machine, a snapshot or a claim holds can be fetched for a while, by whoever has the token."""
