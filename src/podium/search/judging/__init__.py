"""What a candidate is worth: it is tried on cases, checked, and measured."""
