"""A server's directory: its files, its process, its credentials, its guests."""
