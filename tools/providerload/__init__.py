"""A load generator for providers: real operations on machines of its own, measured from the call to the end of the task."""
