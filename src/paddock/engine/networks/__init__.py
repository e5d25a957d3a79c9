"""Networks of machines: addresses, taps, DHCP, DNS, listeners, policies."""
