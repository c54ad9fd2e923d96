"""The policies that search has found, one file each; the registry finds them by their names."""
