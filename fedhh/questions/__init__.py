"""What crosses the boundary between server and clients."""
