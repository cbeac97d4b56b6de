"""Liar's dice: shown by the header's texts."""
