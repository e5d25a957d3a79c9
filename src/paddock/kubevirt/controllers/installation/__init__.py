"""The objects of the installation: the KubeVirt object, and the instancetypes and preferences that exist from the start."""
