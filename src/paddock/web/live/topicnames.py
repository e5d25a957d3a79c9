"""The names of the topics."""

from typing import Literal

WebTopic = Literal["machines", "usage", "tasks", "events", "images", "volumes", "networks", "snapshots", "pools", "providers", "migrations"]
