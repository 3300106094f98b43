"""Loading of torch's compiler."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest


def run(program: str) -> None:
    """Run a program in a process of its own, which has not loaded the compiler."""
    done = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_policies_load_without_the_compiler():
    """Load a policy and compute its actions: this process compiles nothing."""
    pytest.importorskip("rsl_rl", reason="policies need the extra 'train'")
    run(
        """
        import sys
        from pathlib import Path
        from tempfile import TemporaryDirectory
        from dataclasses import asdict
        from manyworlds.cli.policies import load_policy
        from manyworlds.envs import ManagerBasedRlEnv
        from manyworlds.tasks import load_env_cfg, load_rl_cfg
        cfg, rl_cfg = load_env_cfg("Cartpole-Balance"), load_rl_cfg("Cartpole-Balance")
        cfg.scene.num_envs = 2
        env = ManagerBasedRlEnv(cfg, device="cpu")
        import torch
        try:
            load_policy(env, rl_cfg, Path("absent.pt"))
        except FileNotFoundError:
            pass
        assert "torch._dynamo" not in sys.modules
        from manyworlds.rl.runner import OnPolicyRunner
        from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
        runner = OnPolicyRunner(RslRlVecEnvWrapper(env), asdict(rl_cfg), None, "cpu")
        with TemporaryDirectory() as folder:
            runner.cfg["upload_model"] = False
            runner.save(f"{folder}/model_0.pt")
            policy = load_policy(env, rl_cfg, Path(f"{folder}/model_0.pt"))
        assert policy(env.reset()[0]).shape == (2, 1)
        """
    )


@pytest.mark.slow
def test_the_compiler_loads_when_it_is_needed():
    """Compile a function, step an optimizer, and ask for other parts, inside and afterwards."""
    run(
        """
        import sys
        import torch
        from manyworlds.utils.torch_compiler import without_torch_compiler
        with without_torch_compiler():
            layer = torch.nn.Linear(3, 1)
            optimizer = torch.optim.Adam(layer.parameters())
        assert "torch._dynamo" not in sys.modules
        layer(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        double = torch.compile(lambda x: 2.0 * x, backend="eager")
        assert double(torch.ones(2)).tolist() == [2.0, 2.0]
        """
    )
    run(
        """
        import sys
        import torch
        from manyworlds.utils.torch_compiler import without_torch_compiler
        with without_torch_compiler():
            assert torch._dynamo.is_compiling() is False
            assert hasattr(sys.modules["torch._dynamo"], "config")
        with without_torch_compiler():
            assert hasattr(sys.modules["torch._dynamo"], "config")
        """
    )
