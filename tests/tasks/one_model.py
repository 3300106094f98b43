"""Built-in tasks that `ManagerBasedRlEnv` runs: all of their worlds share one model."""

from manyworlds.tasks.registry import BUILTIN_TASKS

# Others need a `BucketedRlEnv`, whose tests step them.
ONE_MODEL_TASKS = [task for task in BUILTIN_TASKS if not task.startswith("Velocity-Flat-Legged")]
"""Names of these tasks."""
