"""One running server: its parts, its event loop, its start and its end."""
