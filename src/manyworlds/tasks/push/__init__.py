"""A planar pusher brings objects of many shapes to goals."""
