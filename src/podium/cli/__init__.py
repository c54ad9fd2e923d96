"""The command line: one binary, one file for each verb."""
