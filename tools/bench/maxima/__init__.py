"""The largest sizes: servers that grow in batches of machines until something takes too long.

`stages.py` has the limits and finds what broke first. `stored.py` grows servers that only store machines: Paddock, and kube-apiserver with
etcd. `living.py` grows a server whose simulated machines run, and uses one of them as people do after each batch.
"""
