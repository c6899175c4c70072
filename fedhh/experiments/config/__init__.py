"""What a configuration holds, and what it builds."""
