"""Web page of a lab; it needs the extra 'lab'.

Names are loaded on first use, so that the lab's process does not import what draws the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from manyworlds.lab.page.lab_page import LabPage
    from manyworlds.lab.page.page_cfg import PageCfg
    from manyworlds.lab.page.page_context import PageContext, Part
    from manyworlds.lab.page.page_server import InProcessPage, PageServer
    from manyworlds.lab.page.reloadable_page import ReloadablePage
    from manyworlds.lab.page.tabs import TABS
    from manyworlds.lab.page.world_visit import walk_in

__all__ = [
    "TABS",
    "InProcessPage",
    "LabPage",
    "PageCfg",
    "PageContext",
    "PageServer",
    "Part",
    "ReloadablePage",
    "walk_in",
]

_MODULES = {
    "TABS": ".tabs",
    "InProcessPage": ".page_server",
    "LabPage": ".lab_page",
    "PageCfg": ".page_cfg",
    "PageContext": ".page_context",
    "PageServer": ".page_server",
    "Part": ".page_context",
    "ReloadablePage": ".reloadable_page",
    "walk_in": ".world_visit",
}

__getattr__ = lazy_names(__name__, _MODULES)
