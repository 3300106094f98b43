"""Programs and services around a lab, which import its face, its client and its readers only."""
