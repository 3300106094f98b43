"""Nothing reads values back, or makes tensors elsewhere.

Tensors on the device 'meta' have shapes but no values: reading one raises, as does mixing it with
a tensor of another device. What passes here runs on a GPU without waiting for it.
"""

import pytest
import torch

from manyworlds.signals import (
    DelayBuffer,
    GaussianNoiseCfg,
    NoiseModelWithAdditiveBias,
    NoiseModelWithAdditiveBiasCfg,
    UniformNoiseCfg,
)
from manyworlds.utils import math as mw

B = 5
META = {"device": "meta"}
Q, V, A = torch.empty(B, 4, **META), torch.empty(B, 3, **META), torch.empty(B, **META)
M, POSE = torch.empty(B, 3, 3, **META), torch.empty(B, 4, 4, **META)
DEPTH, K = torch.empty(B, 6, 7, **META), torch.empty(B, 3, 3, **META)

ARGUMENTS = {
    "apply_delta_pose": (V, Q, torch.empty(B, 6, **META)),
    "axis_angle_from_quat": (Q,),
    "combine_frame_transforms": (V, Q, V, Q),
    "compute_pose_error": (V, Q, V, Q),
    "convert_camera_frame_orientation_convention": (Q, "world", "ros"),
    "convert_quat": (Q,),
    "copysign": (1.0, V),
    "create_rotation_matrix_from_view": (V, V),
    "default_orientation": (B, "meta"),
    "euler_xyz_from_quat": (Q,),
    "interpolate_poses": (POSE[0], POSE[0], 3, None, True),
    "interpolate_rotations": (M[0], M[0], 3),
    "make_pose": (V, M),
    "matrix_from_euler": (V, "ZYX"),
    "matrix_from_quat": (Q,),
    "dot": (V, V),
    "normalize": (V,),
    "orthogonalize_perspective_depth": (DEPTH, K),
    "pose_in_A_to_pose_in_B": (POSE, POSE),
    "pose_inv": (POSE,),
    "project_points": (torch.empty(B, 9, 3, **META), K),
    "quat_apply": (Q, V),
    "quat_apply_inverse": (Q, V),
    "quat_apply_yaw": (Q, V),
    "quat_box_minus": (Q, Q),
    "quat_box_plus": (Q, V),
    "quat_conjugate": (Q,),
    "quat_error_magnitude": (Q, Q),
    "quat_from_angle_axis": (A, V),
    "quat_from_euler_xyz": (A, A, A),
    "quat_from_matrix": (M,),
    "quat_inv": (Q,),
    "quat_mul": (Q, Q),
    "quat_slerp": (Q, Q, A),
    "quat_unique": (Q,),
    "random_orientation": (B, "meta"),
    "random_yaw_orientation": (B, "meta"),
    "rigid_body_twist_transform": (V, V, V, Q),
    "sample_cylinder": (1.0, (0.0, 1.0), B, "meta"),
    "sample_gaussian": (V, V, (B, 3), "meta"),
    "sample_log_uniform": (V, V, (B, 3), "meta"),
    "pose_bounds": ({"x": (0.0, 1.0)}, "meta"),
    "sample_pose_range": ({"x": (0.0, 1.0)}, B, "meta"),
    "sample_triangle": (0.0, 1.0, B, "meta"),
    "sample_uniform": (V, V, (B, 3), "meta"),
    "saturate": (V, V, V),
    "scale_transform": (V, V, V),
    "skew_symmetric_matrix": (V,),
    "subtract_frame_transforms": (V, Q, V, Q),
    "transform_points": (torch.empty(9, 3, **META), V, Q),
    "transform_poses_from_frame_A_to_frame_B": (POSE, POSE[0], POSE[0]),
    "unmake_pose": (POSE,),
    "unproject_depth": (DEPTH, K, False),
    "unscale_transform": (V, V, V),
    "wrap_to_pi": (A,),
    "yaw_quat": (Q,),
}
ON_HOST = {
    "generate_random_rotation",
    "generate_random_transformation_matrix",
    "generate_random_translation",
    "is_identity_pose",
}


def test_every_function_is_covered():
    """List each function of the mathematics once."""
    assert ARGUMENTS.keys() | ON_HOST == set(mw.__all__)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_mathematics_stays_on_the_device(name):
    """Compute without reading a value, and answer on the same device."""
    result = getattr(mw, name)(*ARGUMENTS[name])
    tensors = result if isinstance(result, tuple) else (result,)
    assert all(t.device.type == "meta" for t in tensors if isinstance(t, torch.Tensor))


def test_delays_stay_on_the_device():
    """Append, compute, peek, reset and backfill by ids without reading a value."""
    buffer = DelayBuffer(0, 3, B, "meta", hold_prob=0.5, update_period=2)
    ids = torch.empty(2, dtype=torch.long, **META)
    for _ in range(3):
        buffer.append(V)
        assert buffer.compute().shape == (B, 3)
    buffer.reset(ids)
    buffer.backfill(V[:2], ids)
    buffer.set_lags(torch.empty(2, dtype=torch.long, **META), ids)
    assert buffer.peek().device.type == "meta"


def test_noise_stays_on_the_device():
    """Apply noise and bias, and reset by ids, without reading a value."""
    cfg = NoiseModelWithAdditiveBiasCfg(
        noise_cfg=UniformNoiseCfg(n_min=(-1.0, 0.0, 0.0), n_max=1.0),
        bias_noise_cfg=GaussianNoiseCfg(std=(1.0, 2.0, 3.0)),
    )
    model = NoiseModelWithAdditiveBias(cfg, B, "meta")
    assert model(V).device.type == "meta"
    model.reset(torch.empty(2, dtype=torch.long, **META))
    assert model(V).shape == (B, 3)
