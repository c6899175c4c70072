"""From a goal and a population to the settings of a discovery: `fedhh plan`."""
