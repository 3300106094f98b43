"""Low-level helpers that do not depend on simulation or learning."""
