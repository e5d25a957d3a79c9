"""VirtRigaud's machines, images, networks, classes and Providers, at work through drivers of the provider contract."""
