"""Property tests run the same examples every time, and leave no files."""

from hypothesis import settings

settings.register_profile("manyworlds", deadline=None, derandomize=True, database=None)
settings.load_profile("manyworlds")
