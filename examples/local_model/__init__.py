"""A small judge model from registry packages, served on loopback. Not a part of ragaudit."""
