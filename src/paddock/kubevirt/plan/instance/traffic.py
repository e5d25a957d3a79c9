"""Limits of a machine's traffic on the pod network, by the annotations that the bandwidth plugin has for Pods."""

from collections.abc import Mapping

from paddock.base import quantity
from paddock.engine.networks.nics import TrafficLimit

# bits in a second
LEAST_RATE, MOST_RATE = 1000, 10**15
INGRESS_BANDWIDTH, EGRESS_BANDWIDTH = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"


def traffic_of(annotations: Mapping[str, str] | None) -> TrafficLimit:
    """Return the limits of a machine with these annotations. Raises `ValueError`."""
    rates = []
    for name in (INGRESS_BANDWIDTH, EGRESS_BANDWIDTH):
        text = (annotations or {}).get(name)
        try:
            bits = quantity.whole(text) if text else 0
        except quantity.NotAQuantity:
            bits = -1
        if text and not LEAST_RATE <= bits <= MOST_RATE:
            raise ValueError(f"the annotation {name} is {text!r}: give {LEAST_RATE} to {MOST_RATE} bits in a second")
        rates.append(bits // 8)
    return TrafficLimit(rates[0], rates[0], rates[1], rates[1])
