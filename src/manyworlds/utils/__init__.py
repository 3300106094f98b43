"""The ground floor: small helpers that know nothing of simulation or learning."""
