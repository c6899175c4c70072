"""How many fake clients a discovery survives: `fedhh attack`."""
