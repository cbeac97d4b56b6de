"""Dark hex: shown by the header's texts."""
