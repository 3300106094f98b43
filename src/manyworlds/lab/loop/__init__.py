"""The physics thread: the only writer of the world, its queue, its pace, and its snapshots."""
