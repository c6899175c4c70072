"""Command line: words to calls; nothing imports it."""
