"""A live world as ROS 2 messages, from a process of its own."""
