"""Fake clients: who of a round's cohort they are, and what they send."""
