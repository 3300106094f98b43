"""The page of a lab in the browser; it needs the extra 'lab'."""

from manyworlds.lab.page.context import PageContext, Part
from manyworlds.lab.page.page import LabPage

__all__ = ["LabPage", "PageContext", "Part"]
