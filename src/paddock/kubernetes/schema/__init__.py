"""Declarations of fields, and everything that is derived from them. Pure."""
