"""The round loop and the executors that carry a query to every block of clients."""
