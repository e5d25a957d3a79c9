"""The revisioned store: keys, bytes and revisions. Knows nothing of what the bytes mean."""
