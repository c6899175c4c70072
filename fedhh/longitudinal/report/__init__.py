"""Tables and figures of longitudinal privacy."""
