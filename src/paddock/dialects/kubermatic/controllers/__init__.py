"""Kubermatic's front door for a cluster: what users wrote is in one API, what KubeVirt and CDI take goes to another."""
