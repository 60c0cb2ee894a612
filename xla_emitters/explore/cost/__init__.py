"""What a program costs, without a GPU."""
