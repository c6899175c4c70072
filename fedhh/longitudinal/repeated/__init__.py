"""Discovery over months: runs repeated on a population with time, under a cap for each device."""
