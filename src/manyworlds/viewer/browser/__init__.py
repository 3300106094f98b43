"""Widgets and overlays of web pages, for the play page and for the lab's page.

Nothing here depends on a page: pages combine these parts and define the effects of user actions.
"""
