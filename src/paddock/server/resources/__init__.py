"""The served resources: a `Resource` for every group, version and plural, built in, our own or of a user's CRD."""
