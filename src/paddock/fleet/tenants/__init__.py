"""Tenants: namespaces with a user, rights, a quota and a network policy of their own."""
