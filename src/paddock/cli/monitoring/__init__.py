"""Dashboards for Grafana and rules for Prometheus that query what a server of Paddock serves."""
