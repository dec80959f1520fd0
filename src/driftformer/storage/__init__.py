"""Everything on disk: whole or not there, with checksums, no pickle."""
