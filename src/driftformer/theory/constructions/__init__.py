"""One construction a file: where it stands in the proof, its weights, and the reference that it must match."""
