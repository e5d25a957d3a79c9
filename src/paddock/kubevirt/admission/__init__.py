"""What KubeVirt's and CDI's webhooks do to an object before it is stored."""
