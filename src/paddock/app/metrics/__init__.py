"""`/metrics` of a server that runs machines."""
