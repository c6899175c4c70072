"""`fedhh audit`: lower bounds from running code next to what is claimed, and verdicts."""
