"""fedhh: a simulator for interactive federated heavy-hitter discovery."""

__version__ = "0.1.0"
