"""The explorer: a run, two of them, or a sweep as one page that answers questions."""
