"""The page of a lab in the browser; it needs the extra 'lab'."""

from manyworlds.lab.page.context import PageContext, Part
from manyworlds.lab.page.page import LabPage
from manyworlds.lab.page.reload import ReloadablePage

__all__ = ["LabPage", "PageContext", "Part", "ReloadablePage"]
