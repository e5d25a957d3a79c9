"""Providers as programs: a driver that is served, and a client of one for `paddock provider`."""
