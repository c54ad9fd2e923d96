"""What a candidate may contain: its text, the words it may use, and the gates that read it."""
