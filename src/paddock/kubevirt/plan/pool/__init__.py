"""Decisions about pools of machines."""
