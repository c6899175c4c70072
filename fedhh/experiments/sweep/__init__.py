"""Many runs: what varies, their cells, their results."""
