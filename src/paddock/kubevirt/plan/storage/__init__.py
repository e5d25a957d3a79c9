"""Decisions about claims, DataVolumes and what fills them."""
