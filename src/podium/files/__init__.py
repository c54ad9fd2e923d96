"""Reading of files: text, YAML, JSON and excerpts of values, all within bounds."""
