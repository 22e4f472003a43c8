"""Shared by the tests of memory: exact overlap: the goals of every network, safety at the distance and not one byte closer, both directions."""

from support import memory_networks as networks
from support.memory_figures import NETWORKS


def network(name):
    return networks.unet() if name == "unet" else NETWORKS[name]()
