"""Requests over sockets: HTTP/1.1, TLS, proxies, kept connections."""
