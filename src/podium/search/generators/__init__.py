"""Who writes candidates: breeding, language models, or any command."""
