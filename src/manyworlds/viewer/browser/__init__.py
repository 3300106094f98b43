"""Widgets and overlays of pages in a browser, for the play page and for the lab's page.

Nothing here knows a page: pages compose these parts and decide what a user's action does.
"""
