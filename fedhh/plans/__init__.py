"""What a run does with its clients' data, as one typed value that accounting understands."""
