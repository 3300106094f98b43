"""Tasks of the arm; importing the package registers them."""

from mjlab.utils.lab_api.tasks.importer import import_packages

import_packages(__name__, [".mdp"])
