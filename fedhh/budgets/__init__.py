"""What a device may send over its life: caps for each use case, and a deployed budget manager."""
