"""A run's request in Grid Engine's syntax, given the settings and facts of the cluster."""

from __future__ import annotations

from collections.abc import Mapping

from runyard import errors
from runyard.backends.batch.dialect import Order
from runyard.model import native_units

DEFAULT_MEMORY = "mem_free"  # every cell has it
VIRTUAL_MEMORY = frozenset({"h_vmem", "s_vmem", "h_data", "s_data"})

Settings = Mapping[str, str]


def environment(order: Order, settings: Settings) -> list[str]:
    """The parallel environment: what gives a job more than one slot. Raises InvalidInput."""
    wanted, chosen = order.resources, order.options.get("pe")
    if wanted.nodes > 1:
        return ["-pe", _nodes_environment(order, settings), str(wanted.nodes * wanted.cpus)]
    name = chosen or settings["parallel_environment"]
    return ["-pe", name, str(wanted.cpus)] if chosen or wanted.cpus > 1 else []


def _nodes_environment(order: Order, settings: Settings) -> str:
    """Grid Engine gives slots, not nodes: only one that takes a fixed number of each host gives that many hosts."""
    name, each = settings["nodes_environment"], order.facts.slots_of_node
    if "pe" in order.options:
        raise errors.InvalidInput(
            f"option pe: {order.options['pe']} is for one node", "several are given by the site's nodes_environment"
        )
    if not name:
        raise errors.InvalidInput(
            "Grid Engine knows no nodes, only parallel environments, and this site names none for several nodes",
            "ask for 1 node, or name one with `runyard site edit --option nodes_environment=NAME`",
        )
    if each.isdigit() and int(each) != order.resources.cpus:
        raise errors.InvalidInput(
            f"the parallel environment {name} takes {each} slots of each node", f"ask for --cpus {each}"
        )
    if each and not each.isdigit():
        raise errors.InvalidInput(
            f"the parallel environment {name} does not say how many slots it takes of each node ({each})",
            "name one whose allocation_rule is a number with --option nodes_environment=NAME",
        )
    return name


def limits(order: Order, settings: Settings) -> list[str]:
    """What goes to `-l`. Raises InvalidInput."""
    wanted, asked = order.resources, []
    if wanted.time:
        asked.append(f"h_rt={wanted.time + order.time_margin}")
    if wanted.time and order.warning:
        asked.append(f"s_rt={wanted.time + order.time_margin - order.warning}")
    if wanted.memory:
        asked.append(_memory(order, settings, wanted.memory))
    return [*asked, *gpus(order, settings), *nodes(order)]


def nodes(order: Order) -> list[str]:
    """`hostname=(a|b)&!c`, and labels as the resources that they are there."""
    parts = ["|".join(order.choice.node)] if order.choice.node else []
    parts = [f"({part})" if "|" in part else part for part in parts]
    parts += [f"!{node}" for node in dict.fromkeys((*order.choice.exclude, *order.avoid))]
    labels = [label if "=" in label else f"{label}=true" for label in order.choice.labels]
    return [f"hostname={'&'.join(parts)}", *labels] if parts else labels


def gpus(order: Order, settings: Settings) -> list[str]:
    """Raises InvalidInput."""
    wanted, name = order.resources, settings["gpu_resource"]
    if not wanted.gpus:
        return []
    if wanted.gpu_memory or wanted.gpu_type:
        if "l" in order.options:
            return []  # a rule of the site knows the words for it
        raise errors.InvalidInput(
            "Grid Engine has no common word for the type of a GPU",
            "give the site a rule, such as --option rules='gpu_type=a100 => resource=gpu_a100={gpus}'",
        )
    return [f"{name}={_gpus_per_slot(order, name)}"]


def _gpus_per_slot(order: Order, name: str) -> int:
    """Or for the whole job, where the cluster counts it so."""
    wanted, is_per_slot = order.resources, name in order.facts.per_slot
    if wanted.nodes > 1 and not is_per_slot:
        raise errors.InvalidInput(
            f"this cluster counts {name} once for a job: only its first node would have GPUs", "ask for 1 node"
        )
    slots = wanted.cpus if is_per_slot else 1
    if wanted.gpus % slots:
        raise errors.InvalidInput(
            f"this cluster counts {name} per slot: {wanted.gpus} GPUs cannot be shared by {slots} cpus",
            f"ask for 1 cpu, or for a number of GPUs that {slots} divides",
        )
    return wanted.gpus // slots


def _memory(order: Order, settings: Settings, size: int) -> str:
    name = settings["memory_resource"]
    if order.resources.gpus:
        # CUDA reserves address space by the terabyte: a limit on it kills every GPU run at its start.
        safe = DEFAULT_MEMORY if name in VIRTUAL_MEMORY else name
        name = settings["gpu_memory_resource"] or safe
    slots = order.resources.cpus if name in order.facts.per_slot else 1
    return f"{name}={native_units.whole_megabytes(-(-size // slots))}M"
