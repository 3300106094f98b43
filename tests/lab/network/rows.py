"""Tests of the rows of the contract that are about the network; see `tests/lab/rows.py`."""

from __future__ import annotations

NETWORK_ROWS = {
    # Q
    "Q1": (
        "lab/network/test_streams.py::test_all_rows_of_a_world "
        "lab/network/test_hub.py::test_a_program_of_twenty_lines_moves_a_joint"
    ),
    "Q2": (
        "lab/network/test_streams.py::test_bytes_are_those_of_the_protocol "
        "lab/network/test_streams.py::test_all_rows_of_a_world"
    ),
    "Q3": (
        "lab/network/test_streams.py::test_bytes_are_those_of_the_protocol "
        "lab/network/test_streams.py::test_all_rows_of_a_world"
    ),
    "Q4": (
        "lab/network/test_streams.py::test_bytes_are_those_of_the_protocol "
        "lab/network/test_streams.py::test_all_rows_of_a_world"
    ),
    "Q5": (
        "lab/network/test_streams.py::test_bytes_are_those_of_the_protocol "
        "lab/network/test_streams.py::test_twist_and_actions_are_published_when_there_are_any"
    ),
    "Q6": (
        "lab/network/test_hub.py::test_a_program_of_twenty_lines_moves_a_joint "
        "lab/network/test_streams.py::test_gains_reach_one_robot"
    ),
    "Q7": (
        "lab/network/test_hub.py::test_only_what_is_asked_for_is_encoded "
        "lab/network/test_hub.py::test_clients_that_do_not_read_delay_nobody"
    ),
    "Q8": "lab/network/test_hub.py::test_programs_may_come_first",
    "Q9": "lab/network/test_streams.py::test_the_last_of_many_commands_wins",
    "Q10": (
        "lab/network/test_streams.py::test_targets_of_others_are_told "
        "lab/network/test_conformance.py::test_live_steps_stage_targets "
        "lab/page/test_page.py::test_sliders_are_locked_while_another_steers"
    ),
    "Q11": "lab/network/test_conformance.py::test_control_sources",
    "Q12": (
        "lab/network/test_streams.py::test_the_list_comes_often_at_first "
        "lab/network/test_hub.py::test_lists_of_actuators"
    ),
    "Q13": "lab/network/test_streams.py::test_the_list_of_actuators",
    "Q14": (
        "lab/network/test_streams.py::test_robots_are_matched_by_their_whole_names "
        "lab/network/test_streams.py::test_gains_reach_one_robot"
    ),
    "Q15": (
        "lab/network/test_streams.py::test_bad_messages_are_counted_and_change_nothing "
        "lab/network/test_fuzz.py::test_hostile_controls"
    ),
    # BC
    "BC1": (
        "lab/network/test_hub.py::test_the_hub_outlives_labs "
        "lab/network/test_conformance.py::test_without_a_world"
    ),
    "BC2": "cli/test_lab.py::test_programs_reach_the_world",
    "BC3": (
        "lab/page/test_network_box.py::test_the_page_takes_over_and_drives "
        "lab/network/test_web.py::test_events_are_pushed"
    ),
    "BC4": (
        "lab/network/test_hub.py::test_requests_over_a_socket "
        "lab/network/test_conformance.py::test_a_thousand_direct_steps_are_those_of_mujoco"
    ),
    "BC6": "lab/network/test_conformance.py::test_a_hundred_robots",
    "BC7": (
        "lab/network/test_conformance.py::test_a_thousand_direct_steps_are_those_of_mujoco "
        "lab/network/test_conformance.py::test_the_catalogue "
        "lab/network/test_web.py::test_requests_are_those_of_the_other_face"
    ),
    "BC8": "lab/network/test_conformance.py::test_json_sessions",
    "BC9": (
        "lab/network/test_conformance.py::test_the_catalogue "
        "lab/network/test_dispatcher.py::test_replies_have_the_fields_that_are_declared"
    ),
    "BC10": (
        "lab/network/test_dispatcher.py::test_one_drives_and_others_observe "
        "lab/network/test_hub.py::test_a_killed_driver_loses_the_world"
    ),
    "BC11": (
        "lab/network/test_dispatcher.py::test_addresses_of_other_machines_are_refused "
        "lab/network/test_web.py::test_other_machines_need_the_token "
        "lab/network/test_conformance.py::test_recordings"
    ),
    "BC12": "lab/network/test_dispatcher.py::test_each_request_is_logged_and_counted",
    # Z
    "Z4": (
        "lab/page/test_network_box.py::test_the_page_takes_over_and_drives "
        "lab/network/test_hub.py::test_a_port_in_use_is_told_and_taken_later"
    ),
    # BD
    "BD1": "lab/network/test_conformance.py::test_the_model_is_the_lab_s_with_names_of_clients",
    "BD2": (
        "lab/network/test_conformance.py::test_the_greeting "
        "lab/network/test_conformance.py::test_robots"
    ),
    "BD3": "lab/network/test_conformance.py::test_levels_of_observation",
    "BD4": (
        "lab/network/test_conformance.py::test_a_wrench_lasts_for_its_steps_only "
        "lab/network/test_conformance.py::test_names_as_well_as_arrays"
    ),
    "BD5": (
        "lab/network/test_conformance.py::test_resets lab/network/test_conformance.py::test_seeds"
    ),
    "BD6": "lab/network/test_conformance.py::test_forward_changes_no_step",
    "BD7": "lab/network/test_conformance.py::test_speeds_and_options",
    "BD8": "lab/network/test_conformance.py::test_control_sources",
    "BD9": "lab/network/test_conformance.py::test_velocities",
    "BD10": "lab/network/test_conformance.py::test_teleports",
    "BD11": "lab/network/test_conformance.py::test_unnamed_elements_have_names_for_clients",
    "BD12": "lab/network/test_conformance.py::test_contacts",
    "BD13": "lab/network/test_conformance.py::test_resets",
    "BD14": (
        "lab/network/test_conformance.py::test_gains "
        "lab/network/test_dispatcher.py::test_wrong_requests_are_one_sentence"
    ),
    "BD15": "lab/network/test_conformance.py::test_speeds_and_options",
}
