"""The nouns of ragaudit as frozen records. No I/O, no numpy; import each from its own module."""
