"""The kinds of KubeVirt and CDI: one module each."""
