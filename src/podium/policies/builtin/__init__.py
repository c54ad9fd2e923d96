"""The policies that ship with Podium, one file each; the registry finds them by their names."""
