"""Readable policies as values: read, written, simplified, bounded and interpreted."""
