"""The explorer page: one HTML file that shows everything a compilation did and can be opened from disk."""
