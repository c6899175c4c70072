"""Populations with time: births, rises and falls of words, arrivals of devices; files with days."""
