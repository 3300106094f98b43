"""Web page of a lab; it needs the extra 'lab'."""

from manyworlds.lab.page.in_process_page import TABS, InProcessPage
from manyworlds.lab.page.lab_page import LabPage
from manyworlds.lab.page.page_context import PageContext, Part
from manyworlds.lab.page.reloadable_page import ReloadablePage

__all__ = ["TABS", "InProcessPage", "LabPage", "PageContext", "Part", "ReloadablePage"]
