"""Listings as nvdisasm prints them."""


def listing(text: str, name: str = "fusion") -> str:
    """nvdisasm's form of instructions and labels, 16 bytes an instruction."""
    lines = [f".text.{name}:"]
    address = 0
    for line in (line.strip() for line in text.strip().splitlines()):
        if line.endswith(":"):
            lines.append(line)
        else:
            lines.append(f"        /*{address:04x}*/                   {line} ;")
            address += 16
    return "\n".join(lines)
