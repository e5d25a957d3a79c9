"""While the host cannot run machines: every instance says why."""
