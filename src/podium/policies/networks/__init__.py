"""How the weights of trained networks decide, without what trained them."""
