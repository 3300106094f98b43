"""Tests of each row of the contract of the lab (`spec/live_lab.md`).

A row is the letters of its heading and its number, or, for hotkeys, its key. Tests are named by
their file under `tests/`, several with a space between them; a row that does not make sense here,
or belongs to later work, begins with `not here: ` and says why.
"""

from __future__ import annotations

from tests.lab.file_rows import FILE_ROWS
from tests.lab.play_rows import PLAY_ROWS
from tests.lab.scene_rows import SCENE_ROWS
from tests.lab.server.rows import NETWORK_ROWS

_HEADINGS = (
    "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z AA AB AC AD AE AF BA BB BC BD BE BF BG BH "
    "BI BJ BK BL"
)
SCOPE = dict.fromkeys(_HEADINGS.split(), "") | {"BC": "BC5", "BJ": "BJ4 BJ5"}
"""Headings that the lab follows, and the rows of each that are left for later work."""

ROWS = NETWORK_ROWS | {
    **FILE_ROWS,
    **PLAY_ROWS,
    **SCENE_ROWS,
    # A
    "A1": "lab/test_lab.py::test_the_facade_only_hands_on",
    "A2": "lab/loop/test_physics_loop.py::test_the_engine_needs_nobody_else",
    "A3": (
        "lab/loop/test_physics_loop.py::test_a_callback_that_fails_stops_nobody "
        "lab/loop/test_physics_loop.py::test_an_iteration_has_its_order"
    ),
    "A4": (
        "lab/loop/test_physics_loop.py::test_steps_are_those_of_a_plain_loop "
        "lab/loop/test_physics_loop.py::test_reset_returns_to_the_start "
        "lab/test_lab.py::test_a_saved_state_goes_on_bit_for_bit"
    ),
    "A5": (
        "lab/page/test_captures.py::test_many_contacts_are_copied_quickly "
        "lab/page/test_overlays.py::test_overlays_cost_nothing_when_off"
    ),
    "A7": "lab/page/test_keys.py::test_keys",
    "A8": "lab/loop/test_physics_loop.py::test_a_callback_that_fails_stops_nobody",
    "A10": "lab/loop/test_physics_loop.py::test_options_are_changed_between_steps",
    "A6": "lab/server/test_images.py::test_cameras_that_come_and_go "
    "lab/pictures/test_camera_verbs.py::test_cameras_come_and_go_from_many_threads",
    "A11": "lab/server/test_hub.py::test_a_port_in_use_is_told_and_taken_later",
    "A12": "not here: whoever needs the lab is given it; there is no global to find it by",
    # B
    "B4": "lab/test_lab.py::test_the_lab_tells_its_versions",
    # C
    "C1": (
        "lab/loop/test_physics_loop.py::test_worlds_begin_as_they_are_told "
        "lab/test_lab.py::test_a_lab_begins_in_its_order"
    ),
    "C2": (
        "lab/server/test_protocol_page.py::test_ports_are_local_and_documented "
        "lab/server/test_hub.py::test_ports_are_open_for_this_machine_alone"
    ),
    "C3": "lab/server/test_protocol_page.py::test_ports_are_local_and_documented",
    "C4": (
        "lab/loop/test_physics_loop.py::test_a_callback_that_fails_stops_nobody "
        "lab/loop/test_physics_loop.py::test_an_iteration_has_its_order"
    ),
    "C5": "lab/test_lab.py::test_what_nobody_uses_costs_nothing",
    "C6": "lab/loop/test_physics_loop.py::test_worlds_begin_as_they_are_told",
    "C7": "lab/page/test_overlays.py::test_overlays_cost_nothing_when_off",
    "C8": "lab/pictures/test_drawing.py::test_removed_and_disabled_cameras_say_so",
    "C9": "lab/loop/test_physics_loop.py::test_worlds_begin_as_they_are_told",
    "C10": (
        "cli/test_lab.py::test_headless_needs_no_viser "
        "lab/page/test_keys.py::test_a_key_hides_the_panel"
    ),
    "C11": (
        "lab/loop/test_physics_loop.py::test_worlds_begin_as_they_are_told "
        "lab/page/test_page.py::test_the_top_bar_follows_the_engine"
    ),
    "C12": (
        "lab/loop/test_stress.py::test_a_hundred_starts_and_stops_leak_nothing "
        "lab/loop/test_physics_loop.py::test_stop_is_final "
        "lab/loop/test_physics_loop.py::test_a_process_may_end_without_stopping "
        "cli/test_lab.py::test_control_c_ends_cleanly"
    ),
    # D
    "D1": "lab/world/test_world.py::test_two_robots_of_one_file_are_two",
    "D2": "lab/world/test_world.py::test_assets_come_from_memory",
    "D3": "lab/world/test_world.py::test_the_same_scene_is_the_same_model",
    "D4": "lab/world/test_world.py::test_two_robots_of_one_file_are_two",
    "D6": "lab/server/test_hub.py::test_the_hub_outlives_labs",
    "D7": (
        "lab/scene/test_rebuild.py::test_a_prop_comes_into_a_running_world "
        "lab/page/test_page.py::test_the_page_follows_a_rebuilt_world"
    ),
    "D8": "lab/scene/test_rebuild.py::test_a_hundred_rebuilds_are_one_thread",
    "D9": "lab/world/test_world.py::test_names_are_unique",
    "D10": "lab/world/test_world.py::test_names_are_unique",
    # E
    "E1": "lab/world/test_world.py::test_two_robots_of_one_file_are_two",
    "E2": "lab/world/test_world.py::test_one_robots_options_count",
    "E3": (
        "lab/world/test_world.py::test_one_robots_options_count "
        "lab/world/test_world.py::test_robots_may_disagree_about_options"
    ),
    "E5": "plugins/urlab/test_client_model.py::test_clients_know_names_of_their_own",
    "E6": "lab/world/test_world.py::test_classes_must_be_there",
    "E7": "lab/world/test_world.py::test_everything_of_a_model_survives",
    "E8": "lab/world/test_world.py::test_everything_of_a_model_survives",
    "E9": "lab/world/test_world.py::test_everything_of_a_model_survives",
    "E10": "lab/world/test_world.py::test_everything_of_a_model_survives",
    "E11": "lab/world/test_world.py::test_everything_of_a_model_survives",
    "E12": "lab/world/test_world.py::test_empty_robots_are_refused",
    "E13": "lab/world/test_world.py::test_robots_stand_where_they_are_placed",
    "E14": "lab/world/test_world.py::test_a_broken_robot_can_be_left_out",
    "E15": "lab/world/test_world.py::test_two_robots_of_one_file_are_two",
    "E16": "lab/robots/test_keyframes.py::test_a_reset_is_of_one_robot",
    # F
    "F1": "lab/world/test_world.py::test_the_tree_is_that_of_the_file",
    "F2": "lab/world/test_world.py::test_the_tree_is_that_of_the_file",
    "F3": (
        "spec/test_convex.py::test_pieces_are_cut_once "
        "lab/scene/test_conversions.py::test_a_conversion_does_not_delay_physics_and_can_be_cancelled"
    ),
    "F4": (
        "entity/test_props.py::test_two_props_of_a_mesh_are_cut_once "
        "spec/test_convex.py::test_a_damaged_entry_is_made_again"
    ),
    # G
    "G1": "lab/test_lab.py::test_what_does_not_compile_says_mujocos_reason",
    "G2": (
        "lab/world/test_world.py::test_errors_name_the_element_and_the_robot "
        "lab/page/test_reload.py::test_what_does_not_compile_is_a_card"
    ),
    "G3": "lab/scene/test_rebuild.py::test_a_world_that_does_not_compile_changes_nothing",
    "G4": "lab/world/test_world.py::test_errors_name_the_element_and_the_robot",
    "G5": "lab/test_lab.py::test_a_dump_is_what_was_compiled",
    "G6": "lab/test_lab.py::test_a_dump_is_what_was_compiled",
    "G7": "lab/world/test_world.py::test_a_paused_world_has_contacts_and_sensors",
    "G8": "lab/test_lab.py::test_options_count_and_wrong_ones_are_refused",
    "G9": "lab/world/test_world.py::test_views_have_mujocos_ids",
    "G10": "lab/world/test_world.py::test_a_paused_world_has_contacts_and_sensors",
    "G11": "lab/test_lab.py::test_a_dump_is_what_was_compiled",
    "G12": (
        "lab/scene/test_rebuild.py::test_a_prop_comes_into_a_running_world "
        "lab/scene/test_rebuild.py::test_a_world_that_does_not_compile_changes_nothing"
    ),
    # H
    "H1": "lab/test_lab.py::test_robots_of_a_scene_begin_where_it_says",
    "H2": "lab/test_lab.py::test_robots_are_found_by_name",
    "H3": "lab/world/test_world.py::test_views_have_mujocos_ids",
    "H4": "lab/world/test_world.py::test_views_have_mujocos_ids",
    "H5": "lab/page/test_page.py::test_a_part_that_fails_does_not_end_the_page",
    "H6": (
        "lab/test_lab.py::test_views_are_the_engines_arrays "
        "lab/scene/test_rebuild.py::test_views_of_the_old_world_are_refused"
    ),
    "H7": "lab/world/test_world.py::test_views_have_mujocos_ids",
    "H8": "lab/world/test_world.py::test_bodies_have_owners",
    "H9": "lab/loop/test_physics_loop.py::test_controls_come_in_the_order_of_the_robots",
    "H10": "lab/robots/test_control.py::test_laws_can_be_switched_off",
    # I
    "I1": "lab/loop/test_pacing.py::test_real_time_with_a_reader",
    "I2": (
        "lab/loop/test_physics_loop.py::test_the_lock_keeps_the_world_still "
        "lab/loop/test_physics_loop.py::test_many_steps_in_one_request"
    ),
    "I3": "lab/loop/test_physics_loop.py::test_reset_returns_to_the_start",
    "I4": "lab/loop/test_physics_loop.py::test_a_reset_is_told_once",
    "I5": "lab/loop/test_physics_loop.py::test_commands_keep_their_order_in_the_queue",
    "I6": "lab/loop/test_physics_loop.py::test_commands_act_in_the_next_step",
    "I7": "lab/loop/test_physics_loop.py::test_controls_come_in_the_order_of_the_robots",
    "I8": "lab/loop/test_physics_loop.py::test_pause_stops_time_and_nothing_else",
    "I9": "lab/loop/test_physics_loop.py::test_pause_stops_time_and_nothing_else",
    "I10": (
        "lab/recording/test_replay.py::test_the_world_comes_back "
        "lab/loop/test_physics_loop.py::test_puppets_show_states_and_give_the_world_back"
    ),
    "I11": "lab/loop/test_physics_loop.py::test_a_paused_world_goes_on_slowly",
    "I12": "lab/recording/test_recorder.py::test_pauses_add_nothing",
    "I13": (
        "lab/loop/test_pacing.py::test_ten_seconds_take_ten_seconds "
        "lab/loop/test_pacing.py::test_real_time_with_a_reader"
    ),
    "I14": (
        "lab/loop/test_pacing.py::test_a_stall_is_told_and_made_up_for "
        "lab/loop/test_pacing.py::test_what_is_too_late_is_dropped"
    ),
    "I15": (
        "lab/loop/test_pacing.py::test_the_timestep_may_change "
        "lab/loop/test_pacing.py::test_the_engine_reads_the_timestep_anew"
    ),
    "I16": (
        "lab/loop/test_pacing.py::test_speeds_are_kept_within_bounds "
        "lab/loop/test_physics_loop.py::test_real_time_is_kept"
    ),
    "I17": "lab/loop/test_physics_loop.py::test_stop_is_final",
    "I18": "lab/loop/test_physics_loop.py::test_steps_are_those_of_a_plain_loop",
    # J
    "J2": (
        "lab/page/test_keys.py::test_keys "
        "lab/page/test_overlays.py::test_overlays_cost_nothing_when_off"
    ),
    "J3": "lab/page/test_page.py::test_bodies_are_drawn_where_they_are",
    "J5": "lab/loop/test_stress.py::test_poses_and_joints_are_of_one_step",
    "J6": "entity/test_props.py::test_a_mesh_is_drawn_where_it_is",
    # K
    "K1": "lab/page/test_keys.py::test_keys "
    "lab/page/test_overlays.py::test_contacts_are_discs_and_arrows",
    "K2": "lab/page/test_keys.py::test_keys "
    "lab/page/test_overlays.py::test_without_visuals_only_colliders_remain",
    "K3": "lab/page/test_keys.py::test_keys "
    "lab/page/test_overlays.py::test_colliders_are_what_can_touch",
    "K4": "lab/page/test_keys.py::test_keys "
    "lab/page/test_overlays.py::test_only_hinges_and_slides_have_axes",
    "K5": "lab/page/test_keys.py::test_keys",
    "KO": (
        "lab/page/test_keys.py::test_keys "
        "lab/page/test_timeline_page.py::test_the_camera_path_is_drawn_and_played"
    ),
    "KP": "lab/page/test_keys.py::test_keys",
    "KR": "lab/page/test_keys.py::test_keys",
    "KF": (
        "lab/page/test_driving.py::test_launches_and_contacts_on_the_page "
        "lab/world/test_gallery.py::test_the_launcher_hits_the_humanoid"
    ),
    "KTab": "lab/page/test_keys.py::test_a_key_hides_the_panel",
    "K-": "lab/page/test_browser.py::test_a_slider_moves_a_joint",
    # L
    "L1": (
        "lab/loop/test_physics_loop.py::test_whoever_holds_the_world_may_use_it "
        "lab/loop/test_physics_loop.py::test_the_lock_keeps_the_world_still"
    ),
    "L2": "lab/page/test_captures.py::test_contacts_are_of_one_step",
    "L3": "lab/pictures/test_camera_verbs.py::test_cameras_come_and_go_from_many_threads",
    "L4": "lab/loop/test_physics_loop.py::test_commands_keep_their_order_in_the_queue",
    "L5": "lab/loop/test_physics_loop.py::test_commands_keep_their_order_in_the_queue",
    "L6": "lab/loop/test_stress.py::test_eight_threads_do_no_harm",
    "L7": "lab/loop/test_physics_loop.py::test_stopping_during_a_request",
    "L8": (
        "lab/robots/test_control.py::test_targets_keep_all_digits "
        "lab/loop/test_stress.py::test_commands_are_whole"
    ),
    "L9": "lab/scene/test_rebuild.py::test_a_hundred_rebuilds_are_one_thread",
    # M
    "M2": "lab/world/test_views.py::test_edits_of_the_spec_are_found_after_it_is_built",
    "M3": "lab/world/test_views.py::test_views_are_the_raw_arrays",
    "M4": "lab/world/test_world.py::test_names_are_unique",
    "M5": (
        "lab/world/test_world.py::test_classes_must_be_there "
        "lab/world/test_views.py::test_defaults_are_mujocos"
    ),
    "M6": "lab/world/test_views.py::test_defaults_are_mujocos",
    "M7": (
        "lab/world/test_views.py::test_views_are_the_raw_arrays "
        "lab/world/test_views.py::test_bodies_lead_to_their_parts"
    ),
    "M8": "lab/world/test_views.py::test_views_are_the_raw_arrays",
    "M9": "lab/world/test_views.py::test_views_are_the_raw_arrays",
    "M10": "lab/world/test_views.py::test_views_are_the_raw_arrays",
    "M11": "lab/world/test_views.py::test_views_are_the_raw_arrays",
    "M12": "lab/test_lab.py::test_views_are_the_engines_arrays",
    "M13": "lab/world/test_views.py::test_defaults_are_mujocos",
    # T
    "T1": (
        "lab/recording/test_recorder.py::test_there_is_a_frame_for_each_step "
        "lab/recording/test_recorder.py::test_frames_are_the_states"
    ),
    "T2": "lab/recording/test_replay.py::test_recordings_survive_changes_of_the_world",
    "T3": "lab/recording/test_recorder.py::test_memory_keeps_the_newest",
    "T4": "lab/recording/test_recorder.py::test_a_running_world_is_recorded_step_by_step",
    "T5": "lab/recording/test_recorder.py::test_sessions_are_the_live_one_and_files",
    "T6": "lab/recording/test_recorder.py::test_many_files_do_not_slow_the_start",
    "T7": (
        "lab/recording/test_recorder.py::test_sessions_are_the_live_one_and_files "
        "lab/recording/test_mcap_files.py::test_everything_comes_back "
        "lab/recording/test_text_files.py::test_json_keeps_every_digit"
    ),
    "T8": (
        "lab/recording/test_text_files.py::test_csv_has_its_format "
        "lab/recording/test_text_files.py::test_csv_keeps_names_and_eight_decimals"
    ),
    "T9": "lab/recording/test_text_files.py::test_tables_of_others_are_read",
    "T10": "lab/recording/test_text_files.py::test_tables_of_others_are_read",
    "T11": (
        "lab/recording/test_text_files.py::test_csv_has_its_format "
        "lab/recording/test_replay.py::test_the_camera_comes_along"
    ),
    "T12": "lab/recording/test_text_files.py::test_bad_tables_name_the_line",
    "T13": (
        "lab/recording/test_matching.py::test_rules "
        "lab/recording/test_matching.py::test_the_report_says_why"
    ),
    "T14": "lab/recording/test_matching.py::test_rules",
    "T15": (
        "lab/recording/test_replay.py::test_robots_land_where_they_are_placed "
        "lab/scene/test_rebuild.py::test_how_robots_take_part_in_replays_stays"
    ),
    "T16": "lab/recording/test_replay.py::test_the_world_comes_back",
    "T17": (
        "lab/recording/test_replay.py::test_seeking_is_exact "
        "lab/recording/test_replay.py::test_rate_and_loop "
        "lab/recording/test_replay.py::test_frames_one_by_one"
    ),
    "T18": (
        "lab/moments/test_recording.py::test_quaternions_stay_of_unit_length "
        "lab/moments/test_recording.py::test_slow_recordings_play_smoothly"
    ),
    "T19": "lab/recording/test_replay.py::test_what_derives_from_a_frame_is_known",
    "T20": "lab/recording/test_replay.py::test_disabled_robots_keep_their_state",
    "T21": (
        "lab/recording/test_matching.py::test_the_report_says_why "
        "lab/recording/test_replay.py::test_recordings_survive_changes_of_the_world"
    ),
    "T22": "lab/recording/test_replay.py::test_each_frame_is_shown_as_it_was",
    # U
    "U1": (
        "lab/test_lab.py::test_a_saved_state_goes_on_bit_for_bit "
        "lab/robots/test_policy.py::test_a_saved_state_holds_what_the_policy_remembers "
        "lab/moments/test_states.py::test_sequences_go_on_where_they_were"
    ),
    "U2": "lab/moments/test_states.py::test_states_are_never_torn",
    "U3": "lab/moments/test_states.py::test_states_come_back_while_the_world_stands",
    "U4": "lab/moments/test_states.py::test_many_states_are_kept",
    "U5": "lab/test_lab.py::test_states_of_other_models_are_refused",
    # V
    "V1": "lab/robots/test_control.py::test_pd_is_that_of_the_batch",
    "V2": "lab/robots/test_control.py::test_pd_leaves_other_actuators_alone",
    "V3": "lab/robots/test_control.py::test_laws_can_be_switched_off",
    "V4": "lab/robots/test_control.py::test_pd_is_what_the_formula_says",
    "V5": "lab/robots/test_control.py::test_gains_of_single_joints",
    "V6": (
        "lab/robots/test_control.py::test_gains_of_single_joints "
        "lab/robots/test_control.py::test_gains_go_by_joints"
    ),
    "V7": "lab/robots/test_control.py::test_gains_of_single_joints",
    "V8": "lab/robots/test_control.py::test_laws_can_be_switched_off",
    "V9": (
        "lab/robots/test_control.py::test_sequences_go_smoothly_through_their_poses "
        "lab/robots/test_control.py::test_sequences_wait_begin_and_end"
    ),
    "V10": (
        "lab/robots/test_control.py::test_sequences_are_stopped_and_go_on "
        "lab/robots/test_control.py::test_presets_suit_their_robots"
    ),
    "V11": "lab/robots/test_control.py::test_presets_suit_their_robots",
    "V12": "lab/robots/test_control.py::test_wrong_targets_are_refused",
    "V13": "lab/robots/test_control.py::test_sequences_go_smoothly_through_their_poses",
    "V14": "lab/robots/test_control.py::test_laws_can_be_switched_off",
    # X
    "X1": "lab/world/test_option_layers.py::test_each_option_can_be_given_and_changed",
    "X2": (
        "lab/world/test_world.py::test_one_robots_options_count "
        "lab/world/test_world.py::test_robots_may_disagree_about_options"
    ),
    "X3": "lab/test_lab.py::test_options_count_and_wrong_ones_are_refused",
    "X4": "lab/world/test_option_layers.py::test_a_table_says_where_options_come_from",
    "X5": "lab/world/test_option_layers.py::test_stock_models_stay_as_they_are",
    "X6": "lab/page/test_page.py::test_flags_that_switch_on_and_off",
    "X7": (
        "lab/page/test_page.py::test_options_change_the_physics "
        "lab/loop/test_physics_loop.py::test_options_are_changed_between_steps"
    ),
    # Y
    "Y1": "lab/robots/test_keyframes.py::test_keyframes_of_the_model_are_mujocos",
    "Y2": "lab/robots/test_keyframes.py::test_keyframes_of_the_model_are_mujocos",
    "Y3": "lab/robots/test_keyframes.py::test_the_first_keyframe_is_the_default",
    "Y4": (
        "lab/robots/test_keyframes.py::test_a_reset_is_of_one_robot "
        "lab/robots/test_keyframes.py::test_activations_are_put_as_well"
    ),
    "Y5": "lab/robots/test_keyframes.py::test_a_reset_is_of_one_robot",
    "Y6": (
        "lab/robots/test_keyframes.py::test_held_robots_stay "
        "lab/robots/test_keyframes.py::test_held_robots_can_be_taken"
    ),
    "Y7": (
        "lab/robots/test_keyframes.py::test_held_robots_stay lab/page/test_page.py::test_keyframes"
    ),
    "Y8": "lab/robots/test_keyframes.py::test_what_is_not_there_is_said",
    # Z
    "Z1": "lab/page/test_page.py::test_the_top_bar_follows_the_engine "
    "lab/page/test_page.py::test_sliders_are_locked_while_another_steers",
    "Z2": "lab/page/test_page.py::test_options_change_the_physics "
    "lab/page/test_page.py::test_the_control_law_can_be_switched_off",
    "Z3": "lab/page/test_overlays.py::test_robots_have_overlays_of_their_own "
    "lab/page/test_overlays.py::test_groups_of_geoms_can_be_hidden",
    "Z5": "lab/page/test_page.py::test_snapshots",
    "Z6": "lab/page/test_page.py::test_keyframes",
    "Z7": "lab/page/test_record.py::test_play_and_pause "
    "lab/page/test_timeline_page.py::test_the_same_bar_has_recordings "
    "lab/page/test_record.py::test_record_and_stop "
    "lab/page/test_record.py::test_robots_take_part_as_told "
    "lab/page/test_record.py::test_files_go_out_and_come_in",
    "Z8": "lab/page/test_camera_images.py::test_the_page_shows_a_camera",
    "Z9": "lab/page/test_page.py::test_a_hand_is_not_fought "
    "lab/page/test_page.py::test_sliders_tell_actuators",
    "Z10": "lab/page/test_page.py::test_read_outs_have_units "
    "lab/page/test_page.py::test_plots_hold_each_step",
    "Z11": "lab/page/test_driving.py::test_the_table_of_bindings",
    "Z12": "lab/page/test_page.py::test_one_of_several_robots_is_chosen",
    "Z13": "lab/page/test_page.py::test_an_empty_world_has_a_page",
    "Z14": "lab/page/test_record.py::test_record_and_stop "
    "lab/page/test_page.py::test_the_page_follows_a_rebuilt_world",
    "Z15": "lab/page/test_browser.py::test_the_page_comes_back",
    "Z16": "lab/page/test_keys.py::test_a_key_hides_the_panel",
    # AA
    "AA1": (
        "cli/test_validate.py::test_a_running_world_does_not_notice "
        "lab/page/test_reload.py::test_what_does_not_compile_is_a_card"
    ),
    # AB
    "AB1": "lab/page/test_overlays.py::test_contacts_are_discs_and_arrows",
    "AB2": "lab/page/test_overlays.py::test_forces_are_in_the_world",
    "AB3": "lab/page/test_overlays.py::test_overlays_cost_nothing_when_off",
    "AB4": "lab/page/test_overlays.py::test_colliders_are_what_can_touch",
    "AB5": (
        "lab/page/test_overlays.py::test_wires_follow_the_shapes "
        "lab/page/test_props.py::test_hulls_are_drawn_as_wires"
    ),
    "AB6": "lab/page/test_overlays.py::test_shapes_have_the_colors_of_their_types",
    "AB7": "lab/page/test_overlays.py::test_joints_have_axes_and_ranges",
    "AB8": "lab/page/test_overlays.py::test_sites_and_tendons",
    "AB9": "lab/page/test_overlays.py::test_robots_have_overlays_of_their_own",
    # AD
    "AD1": (
        "lab/page/test_reload.py::test_what_does_not_compile_is_a_card "
        "lab/page/test_failures.py::test_the_command_opens_the_page_of_a_broken_model"
    ),
    "AD3": (
        "lab/server/test_process.py::test_ports_in_use_are_on_the_page "
        "viewer/test_viser_viewer.py::test_taken_port "
        "lab/server/test_hub.py::test_a_port_in_use_is_told_and_taken_later"
    ),
    "AD4": (
        "lab/server/test_hub.py::test_a_port_in_use_is_told_and_taken_later "
        "lab/server/test_process.py::test_ports_in_use_are_on_the_page"
    ),
    "AD6": "cli/test_validate.py::test_summary "
    "lab/page/test_reload.py::test_what_does_not_compile_is_a_card",
    "AD7": "lab/test_lab.py::test_what_does_not_compile_says_mujocos_reason",
    # AE
    "AE1": "lab/test_lab.py::test_a_dump_is_what_was_compiled",
    "AE2": "lab/world/test_diff.py::test_a_dump_is_the_original",
    "AE3": "lab/world/test_diff.py::test_a_defect_is_found",
    "AE4": "lab/world/test_diff.py::test_a_dump_is_the_original",
    # BA
    "AC1": (
        "lab/pictures/test_film.py::test_the_orbit_follows_its_formula "
        "lab/pictures/test_film.py::test_orbits_show_all_of_a_robot "
        "lab/pictures/test_film.py::test_a_film_has_all_frames"
    ),
    "AC2": (
        "lab/pictures/test_film.py::test_poses_at_waypoints_are_exact "
        "lab/pictures/test_film.py::test_a_path_is_filmed "
        "lab/pictures/test_film.py::test_wrong_paths_and_shots_are_named "
        "lab/page/test_timeline_page.py::test_the_camera_path_is_drawn_and_played"
    ),
    "BA1": (
        "lab/loop/test_physics_loop.py::test_snapshots_are_whole "
        "lab/loop/test_stress.py::test_poses_and_joints_are_of_one_step"
    ),
    "BA2": "lab/loop/test_physics_loop.py::test_readers_take_no_lock",
    "BA3": (
        "lab/loop/test_physics_loop.py::test_commands_of_many_threads_keep_their_order "
        "lab/readers/test_reads.py::test_commands_of_one_drain_share_a_snapshot"
    ),
    "BA4": (
        "lab/loop/test_physics_loop.py::test_mujocos_own_errors_are_faults "
        "lab/page/test_page.py::test_a_fault_is_told_and_mended"
    ),
    "BA5": (
        "lab/loop/test_physics_loop.py::test_warnings_are_counted "
        "lab/loop/test_bad_values.py::test_all_warnings_are_counted"
    ),
    "BA6": "lab/loop/test_physics_loop.py::test_helping_threads_change_nothing",
    "BA7": (
        "lab/loop/test_pacing.py::test_the_timestep_may_change "
        "lab/loop/test_pacing.py::test_the_engine_reads_the_timestep_anew"
    ),
    "BA8": "lab/loop/test_physics_loop.py::test_waiting_costs_nothing",
    "BA9": "lab/loop/test_physics_loop.py::test_stopping_during_a_request",
    "BA10": "lab/loop/test_physics_loop.py::test_a_reset_is_told_once",
    "BA11": "lab/recording/test_recorder.py::test_there_is_a_frame_for_each_step",
    # BB
    "BB1": "lab/loop/test_pacing.py::test_real_time_with_a_reader",
    "BB2": (
        "lab/loop/test_physics_loop.py::test_steps_are_those_of_a_plain_loop "
        "lab/page/test_captures.py::test_a_page_leaves_direct_steps_alone"
    ),
    "BB3": "lab/loop/test_physics_loop.py::test_puppets_show_states_and_give_the_world_back",
    "BB4": "lab/loop/test_physics_loop.py::test_modes",
    "BB5": "lab/loop/test_physics_loop.py::test_modes",
    "BB6": "lab/loop/test_physics_loop.py::test_publishers_hear_all_modes",
    "BB7": (
        "lab/loop/test_physics_loop.py::test_many_steps_in_one_request "
        "lab/loop/test_physics_loop.py::test_a_request_that_hangs_is_an_error "
        "lab/loop/test_physics_loop.py::test_stopping_during_a_request"
    ),
    "BB8": "lab/recording/test_replay.py::test_the_world_comes_back",
    # BF
    "BF1": (
        "lab/pictures/test_painter.py::test_depth_and_ids_are_those_of_rays "
        "lab/server/test_images.py::test_all_kinds_with_headers"
    ),
    "BF2": "lab/pictures/test_drawing.py::test_one_drawing_serves_all",
    "BF4": (
        "lab/pictures/test_painter.py::test_a_wall_is_at_its_distance "
        "lab/pictures/test_painter.py::test_depth_and_ids_are_those_of_rays"
    ),
    "BF5": "lab/pictures/test_painter.py::test_depth_and_ids_are_those_of_rays",
    "BF6": (
        "lab/pictures/test_painter.py::test_frames_are_decoded_without_prior_knowledge "
        "lab/server/test_images.py::test_all_kinds_with_headers"
    ),
    "BF7": (
        "lab/pictures/test_drawing.py::test_a_sync_image_is_of_its_step "
        "lab/server/test_images.py::test_images_of_a_step"
    ),
    "BF8": "lab/pictures/test_painter.py::test_intrinsics_and_poses_project_points",
    "BF9": "lab/page/test_camera_images.py::test_the_page_shows_a_camera",
    "BF10": (
        "lab/pictures/test_drawing.py::test_nothing_is_drawn_for_nobody "
        "lab/pictures/test_camera_process.py::test_nothing_is_drawn_without_a_subscription "
        "lab/server/test_images.py::test_nothing_is_drawn_for_nobody"
    ),
    # BG
    "BG1": "lab/page/test_page.py::test_a_click_selects_and_clears",
    "BG2": "lab/play/test_perturb.py::test_the_force_is_mujocos "
    "lab/page/test_page.py::test_a_drag_pulls_a_body "
    "lab/page/test_browser.py::test_the_mouse_pulls_a_body",
    "BG3": "lab/page/test_page.py::test_a_drag_turns_a_body",
    "BG4": "lab/play/test_perturb.py::test_letting_go_leaves_no_force",
    "BG5": "lab/play/test_perturb.py::test_a_paused_body_is_put_where_it_is_pulled "
    "lab/page/test_page.py::test_a_drag_of_a_paused_world_poses_a_body",
    "BG6": "lab/page/test_browser.py::test_the_mouse_pulls_a_body",
    "BG7": "not here: viser draws point and arrow of a drag in the browser, from its own events",
    "BG8": "plugins/urlab/test_conformance.py::test_a_pull_is_told_to_who_integrates",
    # BH
    "BI1": (
        "lab/page/test_soft_bodies.py::test_flexes_are_drawn_live "
        "viewer/test_deformables.py::test_vertices_are_those_of_mujoco"
    ),
    "BH1": "lab/page/test_overlays.py::test_islands_have_colors",
    "BH2": "lab/page/test_overlays.py::test_sleepers_are_dim",
    "BH3": "lab/page/test_overlays.py::test_islands_have_colors",
    "BH4": "lab/page/test_overlays.py::test_sites_and_tendons",
    "BH5": "lab/page/test_overlays.py::test_overlays_cost_nothing_when_off",
    # BI
    # BJ
    "BJ1": (
        "lab/page/test_browser_edits.py::test_a_body_is_selected_and_edited "
        "lab/page/test_inspector.py::test_parts_of_a_body_and_the_filter "
        "lab/page/test_inspector.py::test_edits_are_drawn"
    ),
    "BJ2": "lab/page/test_inspector.py::test_references_are_chosen",
    # BL
    "BL1": "lab/test_rows.py::test_each_entry_is_a_test",
    "BL2": (
        "lab/recording/test_recorder.py::test_there_is_a_frame_for_each_step "
        "lab/recording/test_replay.py::test_the_world_comes_back "
        "lab/loop/test_physics_loop.py::test_steps_are_those_of_a_plain_loop"
    ),
    "BL3": "cli/test_doctor.py::test_the_doctor_tells",
    "BL4": "lab/server/test_protocol_page.py::test_the_page_is_that_of_the_registry",
}
