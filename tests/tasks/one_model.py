"""Built-in tasks that `ManagerBasedRlEnv` runs: all of their worlds share one model."""

from manyworlds.tasks.registry import BUILTIN_TASKS

# Others need a `BucketedRlEnv`, whose tests step them.
ONE_MODEL_TASKS = [task for task in BUILTIN_TASKS if not task.startswith("Velocity-Flat-Legged")]
"""Names of these tasks."""

# Their terms are those of the arm's tasks; pictures of their meshes take half a minute a test.
PICTURES_OF_MESHES = ("Lift-Cube-Yam-Rgb", "Lift-Cube-Yam-Depth", "Multi-Cube-Seg-Yam")
"""Names of tasks that tests over all tasks leave to those of the built-in arm."""
