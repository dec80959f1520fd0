"""Every figure, in one look."""
