"""Web page of a lab; it needs the extra 'lab'."""

from manyworlds.lab.page.lab_page import TABS, LabPage
from manyworlds.lab.page.page_context import PageContext, Part
from manyworlds.lab.page.reloadable_page import ReloadablePage

__all__ = ["TABS", "LabPage", "PageContext", "Part", "ReloadablePage"]
