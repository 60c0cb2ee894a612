"""What the readers of all texts share: sources with lines and columns, a cursor over tokens, and protocol buffers' text format."""
