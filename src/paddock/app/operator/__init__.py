"""`paddock operator`: the front doors against any Kubernetes API, and nothing else."""
