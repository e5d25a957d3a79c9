"""What all Kubernetes objects share: metadata, conditions, references, embedded core shapes, losses. Pure."""
