"""One module per kind of cause: what speaks for it, what to do, and what that would bring."""
