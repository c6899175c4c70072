"""Client side: raw words live here, and nothing but reports leaves it."""
