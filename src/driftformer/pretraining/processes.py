"""Which part of every step's data a process makes.

The data of a step comes in shards, each from random numbers of its own. Processes share the shards out, so that any
number of them sees together exactly what one would see alone, and none makes what another has made.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import distributed

from driftformer.errors import InputError, brought_by

with brought_by("train"):
    from accelerate import Accelerator, DistributedType


@dataclass(frozen=True)
class Part:
    """The shards of one process out of several."""

    shards: int
    process: int = 0
    processes: int = 1

    def __post_init__(self) -> None:
        if self.shards % self.processes:
            raise InputError(
                f"shards is {self.shards}, which {self.processes} processes cannot share evenly; give a number of "
                "processes that divides it, or other --shards"
            )

    @property
    def count(self) -> int:
        """Shards of this process."""
        return self.shards // self.processes

    def chunks(self, number: int) -> tuple[int, ...]:
        """Where the random numbers of its shards come from, for the data of some number."""
        first = number * self.shards + self.process * self.count
        return tuple(range(first, first + self.count))

    def each(self, rows: int) -> int:
        """Rows of a shard where all of them together have about so many."""
        return max(1, rows // self.shards)


def part_in_peace() -> None:
    """Wait for all processes, then end their group: one that left while others still talk to it would be aborted."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.barrier()
        distributed.destroy_process_group()


def part_of(accelerator: Accelerator, shards: int) -> Part:
    """What this process makes; every process has all weights, so ways to share those out are refused."""
    kind = accelerator.distributed_type
    if kind not in (DistributedType.NO, DistributedType.MULTI_CPU, DistributedType.MULTI_GPU):
        raise InputError(
            f"accelerate is set to {kind.value}, but a policy is small enough to be on every device as a whole; "
            "launch it with --multi_gpu, or with torchrun on CPUs"
        )
    return Part(shards, accelerator.process_index, accelerator.num_processes)
