"""The work of `paddock run`: images of this host, the objects of new machines, and the wait for a usable guest."""
