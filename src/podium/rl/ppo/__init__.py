"""PPO with attention over nodes, which learns when to hold a pod. Importing its modules imports JAX."""
