"""The documents as a website: `python -m tools.site` builds it with MkDocs into `build/site`."""
