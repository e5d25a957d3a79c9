"""Generators from declarations: CRDs, OpenAPI, JSON Schemas for editors, reference pages. Kinds come in as arguments."""
