"""What a release consists of: the Debian package, and the files beside the wheel."""
