"""What may change, judge or bound a write besides its own kind (docs/design/0005-api-server.md): webhooks, policies, quotas, limits.

`gate` is what the road of a request asks; it costs a look-up when nobody has configured anything.
"""
