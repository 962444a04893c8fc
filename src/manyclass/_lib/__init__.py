"""What the rooms share and users never call."""
