"""Which test proves which row of the contract of the lab (`spec/live_lab.md`).

A row is the letters of its heading and its number, or, for hotkeys, its key. Tests are named by
their file under `tests/`, several with a space between them; a row that does not make sense here,
or belongs to later work, begins with `not here: ` and says why.
"""

SCOPE = {
    "A": "A6 A11",
    "B": "",
    "C": "C2 C3 C4 C8",
    "D": "",
    "E": "",
    "F": "",
    "G": "",
    "H": "",
    "I": "",
    "J": "",
    "K": "KO KF",
    "L": "",
    "M": "",
    "T": "",
    "U": "",
    "V": "",
    "X": "",
    "Y": "",
    "Z": "Z4 Z8 Z11",
    "AA": "",
    "AB": "",
    "AD": "",
    "AE": "",
    "BA": "",
    "BB": "",
    "BG": "BG8",
    "BH": "",
    "BL": "",
}
"""Headings that the lab follows, and the rows of each that are left for later work."""

PENDING = {
    "A",
    "B",
    "C",
    "D",
    "E",
    "F",
    "G",
    "H",
    "I",
    "J",
    "K",
    "L",
    "Z",
    "AB",
    "AD",
    "BA",
    "BB",
    "BG",
    "BH",
}
"""Headings whose rows were not gone through yet."""

ROWS = {
    # A
    # B
    # C
    # D
    # E
    # F
    # G
    # H
    # I
    # J
    # K
    # L
    # M
    "M2": "lab/test_views.py::test_edits_of_the_spec_are_found_after_it_is_built",
    "M3": "lab/test_views.py::test_views_are_the_raw_arrays",
    "M4": "lab/test_world.py::test_names_are_unique",
    "M5": (
        "lab/test_world.py::test_classes_must_be_there lab/test_views.py::test_defaults_are_mujocos"
    ),
    "M6": "lab/test_views.py::test_defaults_are_mujocos",
    "M7": (
        "lab/test_views.py::test_views_are_the_raw_arrays "
        "lab/test_views.py::test_bodies_lead_to_their_parts"
    ),
    "M8": "lab/test_views.py::test_views_are_the_raw_arrays",
    "M9": "lab/test_views.py::test_views_are_the_raw_arrays",
    "M10": "lab/test_views.py::test_views_are_the_raw_arrays",
    "M11": "lab/test_views.py::test_views_are_the_raw_arrays",
    "M12": "lab/test_lab.py::test_views_are_the_engines_arrays",
    "M13": "lab/test_views.py::test_defaults_are_mujocos",
    # T
    "T1": (
        "lab/test_recorder.py::test_there_is_a_frame_for_each_step "
        "lab/test_recorder.py::test_frames_are_the_states"
    ),
    "T2": "lab/test_replay.py::test_recordings_survive_changes_of_the_world",
    "T3": "lab/test_recorder.py::test_memory_keeps_the_newest",
    "T4": "lab/test_recorder.py::test_a_running_world_is_recorded_step_by_step",
    "T5": "lab/test_recorder.py::test_sessions_are_the_live_one_and_files",
    "T6": "lab/test_recorder.py::test_many_files_do_not_slow_the_start",
    "T7": (
        "lab/test_recorder.py::test_sessions_are_the_live_one_and_files "
        "lab/test_record_mcap.py::test_everything_comes_back "
        "lab/test_record_text.py::test_json_keeps_every_digit"
    ),
    "T8": (
        "lab/test_record_text.py::test_csv_has_its_format "
        "lab/test_record_text.py::test_csv_keeps_names_and_eight_decimals"
    ),
    "T9": "lab/test_record_text.py::test_tables_of_others_are_read",
    "T10": "lab/test_record_text.py::test_tables_of_others_are_read",
    "T11": (
        "lab/test_record_text.py::test_csv_has_its_format "
        "lab/test_replay.py::test_the_camera_comes_along"
    ),
    "T12": "lab/test_record_text.py::test_bad_tables_name_the_line",
    "T13": "lab/test_matching.py::test_rules lab/test_matching.py::test_the_report_says_why",
    "T14": "lab/test_matching.py::test_rules",
    "T15": (
        "lab/test_replay.py::test_robots_land_where_they_are_placed "
        "lab/test_rebuild.py::test_how_robots_take_part_in_replays_stays"
    ),
    "T16": "lab/test_replay.py::test_the_world_comes_back",
    "T17": (
        "lab/test_replay.py::test_seeking_is_exact "
        "lab/test_replay.py::test_rate_and_loop "
        "lab/test_replay.py::test_frames_one_by_one"
    ),
    "T18": (
        "lab/test_recording.py::test_quaternions_stay_of_unit_length "
        "lab/test_recording.py::test_slow_recordings_play_smoothly"
    ),
    "T19": "lab/test_replay.py::test_what_derives_from_a_frame_is_known",
    "T20": "lab/test_replay.py::test_disabled_robots_keep_their_state",
    "T21": (
        "lab/test_matching.py::test_the_report_says_why "
        "lab/test_replay.py::test_recordings_survive_changes_of_the_world"
    ),
    "T22": "lab/test_replay.py::test_each_frame_is_shown_as_it_was",
    # U
    "U1": (
        "lab/test_lab.py::test_a_saved_state_goes_on_bit_for_bit "
        "lab/test_policy.py::test_a_saved_state_holds_what_the_policy_remembers "
        "lab/test_states.py::test_sequences_go_on_where_they_were"
    ),
    "U2": "lab/test_states.py::test_states_are_never_torn",
    "U3": "lab/test_states.py::test_states_come_back_while_the_world_stands",
    "U4": "lab/test_states.py::test_many_states_are_kept",
    "U5": "lab/test_lab.py::test_states_of_other_models_are_refused",
    # V
    "V1": "lab/test_control.py::test_pd_is_that_of_the_batch",
    "V2": "lab/test_control.py::test_pd_leaves_other_actuators_alone",
    "V3": "lab/test_control.py::test_laws_can_be_switched_off",
    "V4": "lab/test_control.py::test_pd_is_what_the_formula_says",
    "V5": "lab/test_control.py::test_gains_of_single_joints",
    "V6": (
        "lab/test_control.py::test_gains_of_single_joints "
        "lab/test_control.py::test_gains_go_by_joints"
    ),
    "V7": "lab/test_control.py::test_gains_of_single_joints",
    "V8": "lab/test_control.py::test_laws_can_be_switched_off",
    "V9": (
        "lab/test_control.py::test_sequences_go_smoothly_through_their_poses "
        "lab/test_control.py::test_sequences_wait_begin_and_end"
    ),
    "V10": (
        "lab/test_control.py::test_sequences_are_stopped_and_go_on "
        "lab/test_control.py::test_presets_suit_their_robots"
    ),
    "V11": "lab/test_control.py::test_presets_suit_their_robots",
    "V12": "lab/test_control.py::test_wrong_targets_are_refused",
    "V13": "lab/test_control.py::test_sequences_go_smoothly_through_their_poses",
    "V14": "lab/test_control.py::test_laws_can_be_switched_off",
    # X
    "X1": "lab/test_option_layers.py::test_each_option_can_be_given_and_changed",
    "X2": (
        "lab/test_world.py::test_one_robots_options_count "
        "lab/test_world.py::test_robots_may_disagree_about_options"
    ),
    "X3": "lab/test_lab.py::test_options_count_and_wrong_ones_are_refused",
    "X4": "lab/test_option_layers.py::test_a_table_says_where_options_come_from",
    "X5": "lab/test_option_layers.py::test_stock_models_stay_as_they_are",
    "X6": "lab/page/test_page.py::test_flags_that_switch_on_and_off",
    "X7": (
        "lab/page/test_page.py::test_options_change_the_physics "
        "lab/test_engine.py::test_options_are_changed_between_steps"
    ),
    # Y
    "Y1": "lab/test_keyframes.py::test_keyframes_of_the_model_are_mujocos",
    "Y2": "lab/test_keyframes.py::test_keyframes_of_the_model_are_mujocos",
    "Y3": "lab/test_keyframes.py::test_the_first_keyframe_is_the_default",
    "Y4": (
        "lab/test_keyframes.py::test_a_reset_is_of_one_robot "
        "lab/test_keyframes.py::test_activations_are_put_as_well"
    ),
    "Y5": "lab/test_keyframes.py::test_a_reset_is_of_one_robot",
    "Y6": (
        "lab/test_keyframes.py::test_held_robots_stay "
        "lab/test_keyframes.py::test_held_robots_can_be_taken"
    ),
    "Y7": "lab/test_keyframes.py::test_held_robots_stay lab/page/test_page.py::test_keyframes",
    "Y8": "lab/test_keyframes.py::test_what_is_not_there_is_said",
    # Z
    # AA
    "AA1": (
        "cli/test_validate.py::test_a_running_world_does_not_notice "
        "lab/page/test_reload.py::test_what_does_not_compile_is_a_card"
    ),
    "AA2": "not here: models are validated when somebody asks, or opens them; nothing does it "
    "unasked, which one could switch off",
    # AB
    # AD
    # AE
    "AE1": "lab/test_lab.py::test_a_dump_is_what_was_compiled",
    "AE2": "lab/test_diff.py::test_a_dump_is_the_original",
    "AE3": "lab/test_diff.py::test_a_defect_is_found",
    "AE4": "lab/test_diff.py::test_a_dump_is_the_original",
    # BA
    # BB
    # BG
    # BH
    # BL
    "BL1": "lab/test_rows.py::test_each_entry_is_a_test",
    "BL2": (
        "lab/test_recorder.py::test_there_is_a_frame_for_each_step "
        "lab/test_replay.py::test_the_world_comes_back "
        "lab/test_engine.py::test_steps_are_those_of_a_plain_loop"
    ),
    "BL3": "cli/test_doctor.py::test_the_doctor_tells",
    "BL4": "not here: there is no protocol before there is a network to speak it",
}
