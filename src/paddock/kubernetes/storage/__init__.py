"""Decisions about claims and volumes that any program shares. Pure."""
