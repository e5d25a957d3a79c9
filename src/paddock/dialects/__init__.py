"""The five dialects and the core kinds they touch: one folder each, one module per kind. Pure."""
