"""Push task: a planar pusher moves objects of many shapes to goals."""
