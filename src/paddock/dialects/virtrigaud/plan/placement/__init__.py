"""Decisions about the places of machines."""
