"""`metrics.k8s.io/v1beta1`: the use of processors and memory, as `kubectl top` asks for it."""
