"""Takes personal data and secrets out of bundles and reports, with pseudonyms that keep every join."""
