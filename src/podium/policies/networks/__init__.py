"""Networks that decide as policies: how weights are evaluated, without what trained them."""
