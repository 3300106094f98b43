"""Readers of a lab, which are processes of their own on shared memory."""
