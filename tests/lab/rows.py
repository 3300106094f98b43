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
    "L",
    "M",
    "T",
    "U",
    "V",
    "X",
    "Y",
    "AA",
    "AE",
    "BA",
    "BB",
    "BL",
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
    "K1": "lab/page/test_page.py::test_keys "
    "lab/page/test_overlays.py::test_contacts_are_discs_and_arrows",
    "K2": "lab/page/test_page.py::test_keys "
    "lab/page/test_overlays.py::test_without_visuals_only_colliders_remain",
    "K3": "lab/page/test_page.py::test_keys "
    "lab/page/test_overlays.py::test_colliders_are_what_can_touch",
    "K4": "lab/page/test_page.py::test_keys "
    "lab/page/test_overlays.py::test_only_hinges_and_slides_have_axes",
    "K5": "lab/page/test_page.py::test_keys",
    "KP": "lab/page/test_page.py::test_keys",
    "KR": "lab/page/test_page.py::test_keys",
    "KTab": "lab/page/test_page.py::test_tab_hides_the_panel",
    "K-": "lab/page/test_browser.py::test_a_slider_moves_a_joint",
    # L
    # M
    # T
    # U
    # V
    # X
    # Y
    # Z
    "Z1": "lab/page/test_page.py::test_the_top_bar_follows_the_engine "
    "lab/page/test_page.py::test_sliders_are_locked_while_another_steers",
    "Z2": "lab/page/test_page.py::test_options_change_the_physics "
    "lab/page/test_page.py::test_the_control_law_can_be_switched_off",
    "Z3": "lab/page/test_overlays.py::test_robots_have_overlays_of_their_own "
    "lab/page/test_overlays.py::test_groups_of_geoms_can_be_hidden",
    "Z5": "lab/page/test_page.py::test_snapshots",
    "Z6": "lab/page/test_page.py::test_keyframes",
    "Z7": "lab/page/test_record.py::test_play_pause_and_seek "
    "lab/page/test_record.py::test_record_and_stop "
    "lab/page/test_record.py::test_robots_take_part_as_told "
    "lab/page/test_record.py::test_files_go_out_and_come_in",
    "Z9": "lab/page/test_page.py::test_a_hand_is_not_fought "
    "lab/page/test_page.py::test_sliders_tell_actuators",
    "Z10": "lab/page/test_page.py::test_read_outs_have_units "
    "lab/page/test_page.py::test_plots_hold_ten_seconds",
    "Z12": "lab/page/test_page.py::test_one_of_several_robots_is_chosen",
    "Z13": "lab/page/test_page.py::test_an_empty_world_has_a_page",
    "Z14": "lab/page/test_record.py::test_record_and_stop "
    "lab/page/test_page.py::test_the_page_follows_a_rebuilt_world",
    "Z15": "lab/page/test_browser.py::test_the_page_comes_back",
    "Z16": "lab/page/test_page.py::test_tab_hides_the_panel",
    # AA
    # AB
    "AB1": "lab/page/test_overlays.py::test_contacts_are_discs_and_arrows",
    "AB2": "lab/page/test_overlays.py::test_forces_are_in_the_world",
    "AB3": "lab/page/test_overlays.py::test_overlays_cost_nothing_when_off",
    "AB4": "lab/page/test_overlays.py::test_colliders_are_what_can_touch",
    "AB5": "lab/page/test_overlays.py::test_wires_follow_the_shapes",
    "AB6": "lab/page/test_overlays.py::test_shapes_have_the_colours_of_their_types",
    "AB7": "lab/page/test_overlays.py::test_joints_have_axes_and_ranges",
    "AB8": "lab/page/test_overlays.py::test_sites_and_tendons",
    "AB9": "lab/page/test_overlays.py::test_robots_have_overlays_of_their_own",
    # AD
    "AD1": "lab/page/test_reload.py::test_what_does_not_compile_is_a_card",
    "AD2": "not here: other formats than MuJoCo's own come with the import of meshes",
    "AD3": "viewer/test_viser_viewer.py::test_taken_port",
    "AD4": "not here: there is no socket but the page's; states of sockets come with networking",
    "AD5": "not here: meshes are not preprocessed; this comes with the import of meshes",
    "AD6": "cli/test_validate.py::test_summary "
    "lab/page/test_reload.py::test_what_does_not_compile_is_a_card",
    "AD7": "lab/test_lab.py::test_what_does_not_compile_says_mujocos_reason",
    # AE
    # BA
    # BB
    # BG
    "BG1": "lab/page/test_page.py::test_a_click_selects_and_clears",
    "BG2": "lab/test_perturb.py::test_the_force_is_mujocos "
    "lab/page/test_page.py::test_a_drag_pulls_a_body "
    "lab/page/test_browser.py::test_the_mouse_pulls_a_body",
    "BG3": "lab/page/test_page.py::test_a_drag_turns_a_body",
    "BG4": "lab/test_perturb.py::test_letting_go_leaves_no_force",
    "BG5": "lab/test_perturb.py::test_a_paused_body_is_put_where_it_is_pulled "
    "lab/page/test_page.py::test_a_drag_of_a_paused_world_poses_a_body",
    "BG6": "lab/page/test_browser.py::test_the_mouse_pulls_a_body",
    "BG7": "not here: viser draws point and arrow of a drag in the browser, from its own events",
    # BH
    "BH1": "lab/page/test_overlays.py::test_islands_have_colours",
    "BH2": "lab/page/test_overlays.py::test_sleepers_are_dim",
    "BH3": "lab/page/test_overlays.py::test_islands_have_colours",
    "BH4": "lab/page/test_overlays.py::test_sites_and_tendons",
    "BH5": "lab/page/test_overlays.py::test_overlays_cost_nothing_when_off",
    # BL
}
