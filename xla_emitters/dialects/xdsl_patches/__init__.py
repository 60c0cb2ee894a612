"""What xDSL 0.74 lacks or gets wrong in classes that it defines itself."""
