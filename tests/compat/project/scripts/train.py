"""Train a policy: python scripts/train.py Sway-Pole --env.scene.num-envs 4096."""

import sway  # noqa: F401
from mjlab.scripts.train import main

if __name__ == "__main__":
    main()
