"""Writes the TypeScript types of the web console from the structs that its server sends."""
