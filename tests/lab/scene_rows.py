"""Tests of the rows of the contract about the scene; see `tests/lab/rows.py`."""

from __future__ import annotations

SCENE_ROWS = {
    # R, S, BE
    "R1": "lab/scene/test_conversions.py::test_a_box_mesh_falls_and_rests",
    "R2": "lab/scene/test_conversions.py::test_props_join_third_party_robots",
    "R3": "entity/test_props.py::test_a_prop_moves_as_its_mode_says",
    "R4": "entity/test_props.py::test_a_prop_moves_as_its_mode_says",
    "R5": (
        "entity/test_props.py::test_a_bowl_holds_a_ball_if_it_is_decomposed "
        "entity/test_props.py::test_without_coacd_the_convex_hull_collides "
        "spec/test_convex.py::test_a_lower_threshold_gives_no_fewer_pieces "
        "spec/test_convex.py::test_thresholds_have_bounds"
    ),
    "R6": "entity/test_props.py::test_mesh_and_hulls_have_their_roles",
    "R7": (
        "entity/test_props.py::test_mesh_and_hulls_have_their_roles "
        "entity/test_props.py::test_a_mass_replaces_the_density"
    ),
    "R8": (
        "entity/test_props.py::test_without_coacd_the_convex_hull_collides "
        "entity/test_props.py::test_contacts_are_mujocos_unless_they_are_given"
    ),
    "R9": "entity/test_props.py::test_contacts_are_mujocos_unless_they_are_given",
    "R10": "entity/test_props.py::test_mesh_and_hulls_have_their_roles",
    "R11": "lab/page/test_props.py::test_hulls_are_drawn_as_wires",
    "S1": (
        "terrains/test_sampled_terrain.py::test_sources_agree "
        "lab/scene/test_walk_on_hills.py::test_a_gait_goes_over_hills "
        "lab/scene/test_walk_on_hills.py::test_a_policy_goes_on_over_hills"
    ),
    "S2": (
        "terrains/test_sampled_terrain.py::test_flat_and_rectangular_fields_compile "
        "terrains/test_sampled_terrain.py::test_settings_have_bounds"
    ),
    "S3": "terrains/test_sampled_terrain.py::test_geoms_are_filtered",
    "S4": "terrains/test_sampled_terrain.py::test_geoms_are_filtered",
    "S5": "terrains/test_sampled_terrain.py::test_sources_agree",
    "S6": "terrains/test_sampled_terrain.py::test_geoms_are_filtered",
    "S7": "terrains/test_sampled_terrain.py::test_asymmetric_terrain_is_not_mirrored",
    "S8": "terrains/test_sampled_terrain.py::test_flat_and_rectangular_fields_compile",
    "S9": "terrains/test_sampled_terrain.py::test_asymmetric_terrain_is_not_mirrored",
    "S10": "terrains/test_sampled_terrain.py::test_rays_are_cached_by_content",
    "S11": "lab/page/test_props.py::test_a_region_is_previewed_and_added",
    "S12": "terrains/test_sampled_terrain.py::test_flat_and_rectangular_fields_compile",
    "BE1": (
        "lab/scene/test_sources.py::test_models_of_other_packages_can_be_edited "
        "lab/scene/test_sources.py::test_menagerie_gives_robots_by_name "
        "lab/scene/test_sources.py::test_our_own_robots_begin_as_their_config_says"
    ),
    "BE2": (
        "lab/scene/test_places.py::test_robots_stand_on_the_ground "
        "lab/scene/test_places.py::test_copies_are_beside_each_other "
        "lab/scene/test_editor.py::test_a_cup_is_added_and_the_world_goes_on "
        "lab/scene/test_editor.py::test_copies_are_items_of_their_own "
        "lab/scene/test_editor.py::test_what_is_removed_leaves_nothing"
    ),
    "BE3": "lab/scene/test_editor.py::test_the_same_items_twice_are_the_same_world",
    "BE4": (
        "lab/scene/test_editor.py::test_items_are_what_stands_in_the_world "
        "lab/scene/test_verbs.py::test_clients_build_a_scene"
    ),
    "BE6": (
        "lab/scene/test_rebuild.py::test_a_world_that_does_not_compile_changes_nothing "
        "lab/page/test_reload.py::test_what_does_not_compile_is_a_card"
    ),
    "BE8": (
        "lab/page/test_user_shapes.py::test_shapes_come_and_vanish "
        "lab/page/test_user_shapes.py::test_wrong_shapes_are_refused"
    ),
    "BE9": "lab/page/test_camera.py::test_buttons_and_a_key_frame",
    "BE10": (
        "lab/scene/test_editor.py::test_a_light_is_an_item "
        "lab/page/test_scene_editor.py::test_a_light_that_is_added_shines_in_the_view"
    ),
    "BE7": "lab/scene/test_conversions.py::test_a_box_mesh_falls_and_rests",
}
