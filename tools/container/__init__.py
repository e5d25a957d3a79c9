"""Paddock's container images: what is in them, how their root file systems are assembled, and how they become OCI archives."""
