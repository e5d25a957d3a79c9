"""Quotas of namespaces: what machines and Pods take of them, and what does not fit."""
