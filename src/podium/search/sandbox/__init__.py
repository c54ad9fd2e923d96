"""Where a candidate runs: worker processes, confined, limited, and killed when they overrun."""
