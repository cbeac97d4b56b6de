"""Ways to draw a game: films, pixels, SVG."""
