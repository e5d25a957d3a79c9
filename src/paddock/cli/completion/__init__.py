"""Completion of command lines: what may come next, and the scripts that ask for it from bash, zsh and fish."""
