"""From what people type to one plan."""
