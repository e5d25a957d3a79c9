"""Parts that change, judge or bound a write besides its own kind (docs/design/0005-api-server.md): webhooks, policies, quotas, limits.

The pipeline of a request calls `gate`, which costs a look-up when nobody has configured anything.
"""
