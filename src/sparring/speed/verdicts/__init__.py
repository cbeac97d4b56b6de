"""What to do about a training's speed: causes in somebody's code, in settings, and around it."""
