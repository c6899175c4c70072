"""Server side: protocols, which see reports and never a raw word."""
