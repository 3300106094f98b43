"""A task package in the style of the reference: a pole on a cart that moves by position targets."""

from mjlab.utils.lab_api.tasks.importer import import_packages

import_packages(__name__, ["utils", ".mdp"])
