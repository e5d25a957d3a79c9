"""How a field is declared once, and everything that can be read off a declaration. Pure."""
