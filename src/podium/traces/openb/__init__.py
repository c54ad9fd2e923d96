"""The OpenB traces: original files, their CSV format, and the embedded profile."""
