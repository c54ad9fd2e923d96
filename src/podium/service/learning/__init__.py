"""Online learning over HTTP: scores, observations and assignments."""
