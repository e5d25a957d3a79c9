"""NetworkPolicies, carried out by the engine's packet filter."""
