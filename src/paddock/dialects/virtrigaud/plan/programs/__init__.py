"""Decisions about the programs of Providers: how they are reached, secured and deployed. Pure."""
