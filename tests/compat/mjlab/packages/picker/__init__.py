"""An arm with a gripper that lifts a cube."""
