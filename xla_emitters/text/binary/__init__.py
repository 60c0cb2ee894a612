"""Binary forms of programs: read as text through jaxlib in a separate process, and written. Nothing is imported here."""
