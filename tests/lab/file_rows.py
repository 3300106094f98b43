"""Tests of the rows of the contract about files; see `tests/lab/rows.py`."""

from __future__ import annotations

FILE_ROWS = {
    # N, O, P
    "N1": (
        "spec/test_uploads.py::test_robots "
        "lab/page/test_scene_editor.py::test_errors_are_where_the_user_looks "
        "lab/scene/test_sources.py::test_the_package_of_menagerie_gives_robots"
    ),
    "N2": "spec/test_model_kinds.py::test_a_new_entity",
    "N3": "spec/test_model_kinds.py::test_files_and_specs_are_the_same",
    "N4": "lab/world/test_views.py::test_defaults_are_mujocos",
    "N5": "entity/test_props.py::test_a_mesh_is_drawn_where_it_is",
    "N6": (
        "spec/test_model_kinds.py::test_a_moved_body_pushes_and_is_not_pushed "
        "lab/play/test_contact_events.py::test_kinematic_entities_push_and_are_not_pushed"
    ),
    "N7": "spec/test_model_kinds.py::test_fromto",
    "O1": (
        "lab/page/test_failures.py::test_the_command_opens_the_page_of_a_broken_model "
        "spec/test_uploads.py::test_robots"
    ),
    "O2": "spec/test_load.py::test_formats",
    "O4": "spec/test_load.py::test_all_are_named",
    "O5": ("spec/test_load.py::test_equal_stems spec/test_load.py::test_textures_are_drawn"),
    "O6": ("spec/test_load.py::test_equal_stems spec/test_export.py::test_same_file_name"),
    "O7": (
        "spec/test_load.py::test_textures_are_drawn "
        "spec/test_load.py::test_textures_in_a_browser "
        "spec/test_load.py::test_glb"
    ),
    "O8": "spec/test_load.py::test_models_are_mujocos",
    "O9": (
        "spec/test_load.py::test_collision_only "
        "spec/test_load.py::test_all_are_named "
        "spec/test_load.py::test_broken"
    ),
    "O10": ("spec/test_load.py::test_models_are_mujocos spec/test_parity.py::test_a_sample"),
    "O12": (
        "spec/test_load.py::test_an_obj_with_materials "
        "lab/page/test_inspector.py::test_an_edit_of_a_material_colors_all_its_geoms"
    ),
    "O13": (
        "spec/test_load.py::test_textures_are_drawn "
        "viewer/test_geom_meshes.py::test_textures_are_where_mujoco_renders_them"
    ),
    "O15": "spec/test_model_kinds.py::test_fromto",
    "O16": (
        "viewer/test_geom_meshes.py::test_a_surface_fills_its_geom "
        "lab/page/test_page.py::test_bodies_are_drawn_where_they_are"
    ),
    "O17": (
        "spec/test_model_kinds.py::test_orientations "
        "spec/test_model_kinds.py::test_units_and_order_of_angles"
    ),
    "O18": "spec/test_model_kinds.py::test_limits_follow_ranges",
    "O19": "lab/world/test_world.py::test_names_are_unique",
    "P1": "spec/test_export.py::test_robot",
    "P2": ("spec/test_export.py::test_only_edits spec/test_export.py::test_notation"),
    "P3": (
        "lab/scene/test_settings.py::test_other_peoples_worlds_are_saved_exactly "
        "spec/test_parity.py::test_a_sample "
        "spec/test_parity.py::test_a_collection "
        "spec/test_parity.py::test_robots"
    ),
    "P4": "spec/test_export.py::test_notation",
    "P5": "plugins/urlab/test_client_model.py::test_clients_know_names_of_their_own",
    # AA, AD
    "AA2": "cli/test_lab.py::test_doubts_can_be_switched_off",
    "AD2": (
        "spec/test_load.py::test_formats "
        "spec/test_load.py::test_collision_only "
        "cli/test_lab.py::test_missing_meshes_can_be_left_out"
    ),
    "AD5": "spec/test_load.py::test_broken spec/test_load.py::test_collision_only",
    # BI, BJ
    "BI2": "spec/test_model_kinds.py::test_shapes_and_materials",
    "BI3": (
        "spec/test_model_kinds.py::test_actuators "
        "lab/page/test_robot_sliders.py::test_kinds_of_actuators_are_as_written"
    ),
    "BI4": (
        "spec/test_model_kinds.py::test_sensors "
        "lab/page/test_page.py::test_sensors_are_grouped_by_type"
    ),
    "BI5": "spec/test_model_kinds.py::test_includes_and_defaults",
    "BI6": "spec/test_model_kinds.py::test_plugins",
    "BI7": (
        "spec/test_model_kinds.py::test_actuators "
        "lab/page/test_robot_sliders.py::test_kinds_of_actuators_are_as_written "
        "lab/page/test_inspector.py::test_edits_are_drawn "
        "lab/edits/test_model_edits.py::test_names_and_types_of_the_file"
    ),
    "BI8": (
        "plugins/urlab/test_client_model.py::test_clients_know_names_of_their_own "
        "lab/edits/test_model_edits.py::test_names_of_the_robots_files"
    ),
    "BI9": "spec/test_model_kinds.py::test_constraints",
    "BI11": "spec/test_model_kinds.py::test_includes_and_defaults",
    "BI12": (
        "spec/test_parity.py::test_a_sample "
        "spec/test_parity.py::test_a_collection "
        "spec/test_parity.py::test_robots "
        "spec/test_load.py::test_models_are_mujocos"
    ),
    "BJ3": (
        "cli/test_validate.py::test_mistakes "
        "cli/test_validate.py::test_a_running_world_does_not_notice "
        "spec/test_load.py::test_hostile_models"
    ),
}
