"""Shared by the readers of all texts: sources with lines and columns, a cursor over tokens, and protocol buffers' text format."""
