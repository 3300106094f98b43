"""Web page of a lab; it needs the extra 'lab'."""

from manyworlds.lab.page.lab_page import TABS, LabPage
from manyworlds.lab.page.page_context import PageContext, Part
from manyworlds.lab.page.reloadable_page import ReloadablePage
from manyworlds.lab.page.walk_in import walk_in

__all__ = ["TABS", "LabPage", "PageContext", "Part", "ReloadablePage", "walk_in"]
