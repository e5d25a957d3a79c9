"""Recordings of a terminal for the documents: `make recordings` plays the scenes on this host and writes SVG files."""
