"""What Kubermatic's front door decides: what of a translation is written to a cluster, and what is said of it. Pure."""
