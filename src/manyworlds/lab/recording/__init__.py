"""Recordings of a live world in files, and their replay."""
