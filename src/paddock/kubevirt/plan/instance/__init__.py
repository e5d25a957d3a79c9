"""Decisions about one run of a machine: what it needs, how far it is, its status. Pure."""
