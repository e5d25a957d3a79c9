"""``make bench``: measured figures beside their targets, the API server's beside those of kube-apiserver with etcd."""
