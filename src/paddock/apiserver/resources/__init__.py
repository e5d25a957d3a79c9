"""What is served: a `Resource` for every group, version and plural, built in, our own or made by a user's CRD."""
