"""The process and its files: whole files, the end at a signal."""
