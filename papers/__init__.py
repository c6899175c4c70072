"""Published numbers of the field, computed again: one module for each paper, `registry` by name."""
