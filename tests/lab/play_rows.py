"""Tests of the rows of the contract about driving and play; see `tests/lab/rows.py`."""

from __future__ import annotations

PLAY_ROWS = {
    # W, AF
    "W1": (
        "lab/robots/test_driving.py::test_a_policy_is_driven "
        "lab/robots/test_driving.py::test_a_task_is_steered "
        "lab/robots/test_driving.py::test_what_cannot_be_driven_says_so"
    ),
    "W2": (
        "lab/page/test_driving.py::test_keys_and_pads_drive "
        "lab/page/test_driving.py::test_gamepads_drive_and_vanish"
    ),
    "W3": "lab/robots/test_driving.py::test_speeds_have_bounds",
    "W4": (
        "lab/robots/test_driving.py::test_inputs_are_held_for_a_while "
        "lab/robots/test_driving.py::test_the_twist_is_read_whole"
    ),
    "W5": (
        "lab/robots/test_driving.py::test_inputs_are_held_for_a_while "
        "lab/page/test_driving.py::test_keys_and_pads_drive"
    ),
    "W6": (
        "lab/robots/test_driving.py::test_inputs_are_held_for_a_while "
        "lab/robots/test_driving.py::test_a_lab_that_runs_stops_the_robot "
        "lab/page/test_driving.py::test_keys_and_pads_drive "
        "lab/page/test_driving.py::test_the_socket_of_the_page"
    ),
    "W7": "lab/page/test_driving.py::test_the_camera_stays_behind",
    "W8": (
        "lab/robots/test_driving.py::test_inputs_are_held_for_a_while "
        "lab/page/test_driving.py::test_keys_and_pads_drive"
    ),
    "W9": (
        "lab/robots/test_driving.py::test_modes_of_bindings "
        "lab/world/test_gallery.py::test_keys_drive_the_arm"
    ),
    "W10": "lab/robots/test_driving.py::test_wrong_bindings_are_refused",
    "AF1": (
        "lab/play/test_launcher.py::test_a_parabola_hits_the_target "
        "lab/play/test_launcher.py::test_direct_launches_have_their_speed "
        "lab/play/test_launcher.py::test_reset_and_auto_fire "
        "lab/play/test_launcher.py::test_wrong_aims_are_refused"
    ),
    "AF2": (
        "lab/server/test_images.py::test_colors_on_the_port_of_a_camera "
        "lab/server/test_images.py::test_cameras_of_robots"
    ),
    "AF3": (
        "lab/play/test_contact_events.py::test_a_touch_is_an_event "
        "lab/play/test_contact_events.py::test_events_are_those_of_plain_mujoco"
    ),
    "AF4": "lab/play/test_contact_events.py::test_bodies_sleep_and_wake",
    "AF5": "lab/world/test_views.py::test_views_are_the_raw_arrays",
    "AF6": "lab/page/test_driving.py::test_commanded_and_applied_controls",
    "AF7": (
        "lab/server/test_process.py::test_ports_in_use_are_on_the_page "
        "lab/page/test_network_box.py::test_the_page_takes_over_and_drives"
    ),
    "AF8": "lab/robots/test_policy.py::test_a_robot_moves_as_in_plain_mujoco",
}
