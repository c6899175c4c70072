"""The servers of a pipeline: an ingestor that forgets who sent what, and an aggregator."""
