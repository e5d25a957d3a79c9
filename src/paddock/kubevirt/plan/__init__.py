"""Decisions as pure functions: want and seen go in, actions and their reasons come out."""
