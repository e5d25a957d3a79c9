"""Decisions about migrations between nodes."""
