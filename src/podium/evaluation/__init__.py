"""How good is a policy? Cases, seed splits, measures, paired statistics, held-out validation."""
