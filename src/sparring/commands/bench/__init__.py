"""`sparring bench`: pools and training, measured after they are proven valid."""
