"""One module per dialect: to KubeVirt and back, each with the value and its losses. Pure."""
