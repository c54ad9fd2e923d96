"""PPO with attention over nodes, which learns when to hold a pod back."""
