"""Editor of a live world's scene: items, their sources, scene files."""

from manyworlds.lab.scene.editor import SceneEditor
from manyworlds.lab.scene.items import Bounds, ItemFacts, ItemRequest, SceneItem, TreeNode
from manyworlds.lab.scene.sources import Source, load_source, menagerie_names, registered_names

__all__ = [
    "Bounds",
    "ItemFacts",
    "ItemRequest",
    "SceneEditor",
    "SceneItem",
    "Source",
    "TreeNode",
    "load_source",
    "menagerie_names",
    "registered_names",
]
