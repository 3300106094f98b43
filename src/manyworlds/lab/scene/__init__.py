"""Editor of a live world's scene: items, their sources, scene files."""

from manyworlds.lab.scene.editor import SceneEditor
from manyworlds.lab.scene.items import ItemBounds, ItemFacts, ItemRequest, SceneItem, TreeNode
from manyworlds.lab.scene.sources import Source, load_source, menagerie_names, registered_names

__all__ = [
    "ItemBounds",
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
