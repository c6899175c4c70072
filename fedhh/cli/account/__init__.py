"""The commands of `fedhh account`."""
