"""`sparring eval`: policies and bots against each other, other engines and published scores."""
