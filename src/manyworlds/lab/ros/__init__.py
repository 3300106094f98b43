"""A live world as ROS 2 messages, out of its process, with or without ROS on this machine."""
