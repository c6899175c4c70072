"""Privacy loss distributions, their sums, and the numerics that both rest on."""
