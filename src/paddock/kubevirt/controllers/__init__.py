"""Controllers: each reads the API, plans purely, acts through the API and the engine, and reports. They never import each other."""
