"""Decisions about VMSets."""
