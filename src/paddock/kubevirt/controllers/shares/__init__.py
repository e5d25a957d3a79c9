"""The shares of namespaces in the processors of the host."""
