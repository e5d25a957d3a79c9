"""What stands for the installation: the KubeVirt object, and the instancetypes and preferences that are there from the start."""
