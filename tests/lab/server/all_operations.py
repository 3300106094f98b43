"""Operations of a server with its plugins."""

from manyworlds.lab.server import Dispatcher

OPERATIONS = Dispatcher(None).operations
