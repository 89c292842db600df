"""Bytes at rest: canonical JSON, journals, and the tables that people write."""
