"""Tests of the rows of the contract that are about the network; see `tests/lab/rows.py`."""

from __future__ import annotations

NETWORK_ROWS = {
    # Q
    "Q1": (
        "plugins/urlab/test_streams.py::test_all_rows_of_a_world "
        "lab/server/test_hub.py::test_a_program_of_twenty_lines_moves_a_joint"
    ),
    "Q2": (
        "plugins/urlab/test_streams.py::test_bytes_are_those_of_the_protocol "
        "plugins/urlab/test_streams.py::test_all_rows_of_a_world"
    ),
    "Q3": (
        "plugins/urlab/test_streams.py::test_bytes_are_those_of_the_protocol "
        "plugins/urlab/test_streams.py::test_all_rows_of_a_world"
    ),
    "Q4": (
        "plugins/urlab/test_streams.py::test_bytes_are_those_of_the_protocol "
        "plugins/urlab/test_streams.py::test_all_rows_of_a_world"
    ),
    "Q5": (
        "plugins/urlab/test_streams.py::test_bytes_are_those_of_the_protocol "
        "plugins/urlab/test_streams.py::test_twist_and_actions_are_published_when_there_are_any"
    ),
    "Q6": (
        "lab/server/test_hub.py::test_a_program_of_twenty_lines_moves_a_joint "
        "plugins/urlab/test_streams.py::test_gains_reach_one_robot"
    ),
    "Q7": (
        "lab/server/test_process.py::test_steps_over_a_process_are_those_of_mujoco "
        "lab/server/test_process.py::test_stuck_clients_delay_nothing "
        "lab/server/test_hub.py::test_only_what_is_asked_for_is_encoded "
        "lab/server/test_hub.py::test_clients_that_do_not_read_delay_nobody"
    ),
    "Q8": "lab/server/test_hub.py::test_programs_may_come_first",
    "Q9": "plugins/urlab/test_streams.py::test_the_last_of_many_commands_wins",
    "Q10": (
        "plugins/urlab/test_streams.py::test_targets_of_others_are_told "
        "plugins/urlab/test_conformance.py::test_live_steps_stage_targets "
        "lab/page/test_page.py::test_sliders_are_locked_while_another_steers"
    ),
    "Q11": "plugins/urlab/test_conformance.py::test_control_sources",
    "Q12": (
        "plugins/urlab/test_streams.py::test_the_list_comes_often_at_first "
        "lab/server/test_hub.py::test_lists_of_actuators"
    ),
    "Q13": "plugins/urlab/test_streams.py::test_the_list_of_actuators",
    "Q14": (
        "plugins/urlab/test_streams.py::test_robots_are_matched_by_their_whole_names "
        "plugins/urlab/test_streams.py::test_gains_reach_one_robot"
    ),
    "Q15": (
        "plugins/urlab/test_streams.py::test_bad_messages_are_counted_and_change_nothing "
        "lab/server/test_fuzz.py::test_hostile_controls"
    ),
    # BC
    "BC1": (
        "lab/client/test_outlasting.py::test_sessions_outlast_reloads_and_edits "
        "lab/server/test_process.py::test_the_process_outlives_labs_and_rebuilds "
        "lab/server/test_hub.py::test_the_hub_outlives_labs "
        "plugins/urlab/test_conformance.py::test_without_a_world"
    ),
    "BC2": "cli/test_lab.py::test_programs_reach_the_world",
    "BC3": (
        "lab/page/test_page.py::test_the_top_bar_follows_the_engine "
        "lab/page/test_network_box.py::test_the_page_takes_over_and_drives "
        "lab/server/test_web.py::test_events_are_pushed"
    ),
    "BC4": (
        "lab/server/test_hub.py::test_requests_over_a_socket "
        "plugins/urlab/test_conformance.py::test_a_thousand_direct_steps_are_those_of_mujoco"
    ),
    "BC6": "plugins/urlab/test_served_models.py::test_a_hundred_robots",
    "BC7": (
        "plugins/urlab/test_conformance.py::test_a_thousand_direct_steps_are_those_of_mujoco "
        "plugins/urlab/test_conformance.py::test_the_catalogue "
        "lab/server/test_web.py::test_requests_are_those_of_the_other_face"
    ),
    "BC8": "plugins/urlab/test_conformance.py::test_json_sessions",
    "BC9": (
        "plugins/urlab/test_conformance.py::test_the_catalogue "
        "lab/server/test_dispatcher.py::test_replies_have_the_fields_that_are_declared"
    ),
    "BC10": (
        "lab/server/test_dispatcher.py::test_one_drives_and_others_observe "
        "lab/server/test_hub.py::test_a_killed_driver_loses_the_world"
    ),
    "BC11": (
        "lab/server/test_dispatcher.py::test_addresses_of_other_machines_are_refused "
        "lab/server/test_curve_access.py::test_requests_and_states_with_the_key "
        "lab/server/test_curve_access.py::test_others_are_not_answered "
        "lab/server/test_curve_access.py::test_old_protocols_stay_on_this_machine "
        "lab/server/test_web.py::test_other_machines_need_the_token "
        "plugins/urlab/test_conformance.py::test_recordings"
    ),
    "BC12": "lab/server/test_dispatcher.py::test_each_request_is_logged_and_counted",
    # Z
    "Z4": (
        "lab/page/test_camera_images.py::test_all_streams_are_switched "
        "lab/page/test_network_box.py::test_the_page_takes_over_and_drives "
        "lab/server/test_hub.py::test_a_port_in_use_is_told_and_taken_later"
    ),
    # BD
    "BD1": (
        "plugins/urlab/test_conformance.py::test_the_model_is_the_lab_s_with_names_of_clients "
        "lab/client/test_client.py::test_the_model_is_the_lab_s "
        "lab/client/test_client.py::test_another_version_of_mujoco"
    ),
    "BD2": (
        "lab/client/test_client.py::test_another_version_of_mujoco "
        "plugins/urlab/test_conformance.py::test_the_greeting "
        "plugins/urlab/test_served_models.py::test_robots"
    ),
    "BD3": "plugins/urlab/test_conformance.py::test_levels_of_observation",
    "BD4": (
        "plugins/urlab/test_conformance.py::test_a_wrench_lasts_for_its_steps_only "
        "plugins/urlab/test_conformance.py::test_names_as_well_as_arrays"
    ),
    "BD5": (
        "plugins/urlab/test_conformance.py::test_resets "
        "plugins/urlab/test_conformance.py::test_seeds"
    ),
    "BD6": (
        "plugins/urlab/test_conformance.py::test_forward_reads_what_was_written "
        "plugins/urlab/test_conformance.py::test_forward_changes_no_step"
    ),
    "BD7": (
        "plugins/urlab/test_conformance.py::test_pauses_and_fast_forward "
        "plugins/urlab/test_conformance.py::test_speeds_and_options"
    ),
    "BD8": "plugins/urlab/test_conformance.py::test_control_sources",
    "BD9": "plugins/urlab/test_conformance.py::test_velocities",
    "BD10": "plugins/urlab/test_conformance.py::test_teleports",
    "BD11": "plugins/urlab/test_served_models.py::test_unnamed_elements_have_names_for_clients",
    "BD12": "plugins/urlab/test_conformance.py::test_contacts",
    "BD13": "plugins/urlab/test_conformance.py::test_resets",
    "BD14": (
        "plugins/urlab/test_conformance.py::test_gains "
        "lab/server/test_dispatcher.py::test_wrong_requests_are_one_sentence"
    ),
    "BD15": "plugins/urlab/test_conformance.py::test_speeds_and_options",
    # BK
    "BK1": (
        "lab/client/test_faces.py::test_each_verb_is_a_method "
        "lab/client/test_faces.py::test_a_call_is_that_of_the_verb "
        "lab/client/test_faces.py::test_the_client_is_a_face"
    ),
    "BK2": (
        "lab/client/test_client.py::test_data_follow_each_step "
        "lab/client/test_client.py::test_a_world_that_runs_is_followed "
        "lab/client/test_client.py::test_rebuilds_replace_the_model"
    ),
    "BK3": (
        "lab/client/test_client.py::test_robots_and_their_elements "
        "lab/client/test_client.py::test_mistakes_are_typed"
    ),
    "BK4": (
        "lab/client/test_faces.py::test_robots_have_the_properties_of_entities "
        "lab/client/test_robot_reads.py::test_states_are_those_of_the_batch "
        "lab/client/test_robot_reads.py::test_quantities_of_the_last_step"
    ),
    "BK5": (
        "lab/client/test_client.py::test_mistakes_are_typed "
        "lab/client/test_faces.py::test_each_code_has_a_class"
    ),
    "BK6": (
        "lab/client/test_client.py::test_leaving_gives_the_mode_back "
        "lab/client/test_client.py::test_a_killed_client_loses_the_world"
    ),
    "BK7": (
        "lab/client/test_lab_env.py::test_gymnasium_finds_nothing_to_complain_about "
        "lab/client/test_lab_env.py::test_results_are_those_of_the_local_environment"
    ),
    "BK8": "lab/robots/test_policy.py::test_robots_that_do_not_fit_are_refused",
    "BK9": (
        "lab/robots/test_policy.py::test_a_robot_moves_as_in_plain_mujoco "
        "lab/client/test_examples.py::test_a_policy_runs_elsewhere"
    ),
    "BK10": (
        "lab/page/test_page.py::test_sliders_are_locked_while_another_steers "
        "lab/page/test_page.py::test_read_outs_have_units "
        "lab/page/test_camera_images.py::test_the_page_shows_a_camera"
    ),
    "BK11": (
        "plugins/ros2/test_ros.py::test_third_party_robots "
        "plugins/ros2/test_ros.py::test_imus_and_cameras "
        "plugins/ros2/test_ros.py::test_the_file_is_read_by_ros_tools "
        "plugins/ros2/test_ros.py::test_rosbags_reads_the_file"
    ),
    "BK12": "lab/client/test_examples.py::test_an_arm_follows_the_sticks",
    "BK13": "test_examples.py::test_each_example_has_a_number_and_a_test",
    "BK14": "lab/client/test_client.py::test_another_version_of_mujoco",
}
