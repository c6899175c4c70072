"""One run: its rounds, measures, privacy and directory."""
