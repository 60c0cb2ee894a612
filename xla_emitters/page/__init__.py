"""The explorer page: one HTML file with everything that a compilation did, opened from disk."""
