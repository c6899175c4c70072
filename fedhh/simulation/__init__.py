"""The round loop and the executors that carry a question to every block of clients."""
