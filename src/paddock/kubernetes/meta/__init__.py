"""The common parts of all Kubernetes objects: metadata, conditions, references, embedded core shapes, losses. Pure."""
