"""Decisions about one run of a machine: what it needs, how far it is, what is said of it. Pure."""
