"""The controllers that run beside the server, and the values that each is wired with."""
