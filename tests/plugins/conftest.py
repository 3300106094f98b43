"""Worlds for tests of plugins: those of the tests of the server and the viewer."""

from tests.lab.server.conftest import lab, roster, server_process
from tests.viewer.conftest import make_env

__all__ = ["lab", "make_env", "roster", "server_process"]
