"""Constants of third-party robots that only mjlab names."""

from __future__ import annotations

from functools import partial

from manyworlds.asset_zoo.quadruped import QUADRUPED_ACTUATORS
from manyworlds.asset_zoo.third_party import third_party_spec

GO1_HIP_ACTUATOR_CFG, GO1_KNEE_ACTUATOR_CFG = QUADRUPED_ACTUATORS
"""Position control of Go1's hips and thighs, and of its calves."""

get_i2rt_yam_spec = partial(third_party_spec, "i2rt_yam")
get_unitree_g1_spec = partial(third_party_spec, "unitree_g1")
get_unitree_go1_spec = partial(third_party_spec, "unitree_go1")
