"""The words of the dialect that live in metadata."""

FINALIZER = "infrastructure.stakater.com/virtualmachine"
# Nothing is written to a machine with this annotation.
PAUSE = "crossplane.io/paused"
