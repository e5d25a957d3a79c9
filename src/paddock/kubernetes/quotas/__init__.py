"""The amounts that quotas count, and what machines and Pods take of them. Pure."""
