"""The file that an agent at work goes on from, whole or not there.

It holds the state of each user, the rounds that wait for their rewards, what was seen of columns, and two counters that
random numbers belong to; so the next arms are those that would have been chosen without the break. It may come from a
stranger: sizes, types and numbers are checked one by one, and every restored user plays a round on a copy.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from driftformer.agents.base import Agent
from driftformer.agents.registry import full_label
from driftformer.agents.services.memory import Rows
from driftformer.agents.services.ragged import joined, parted
from driftformer.agents.services.reading import LARGEST, LARGEST_COLUMN, whole
from driftformer.agents.services.rounds import Open, Options, Service, User
from driftformer.agents.services.scaling import Scaler
from driftformer.errors import InputError, require_count
from driftformer.randomness import one_thread
from driftformer.storage.files import tidy_beside, write_atomically
from driftformer.storage.tensors import LARGEST as LARGEST_FILE
from driftformer.storage.tensors import BrokenFile, parse_object, read_tensors, with_checksum


def save_service(service: Service, problems: int | None, path: Path) -> None:
    """Write everything that is needed to go on."""
    tensors = _rounds(service.users)
    if service.memory is not None:
        tensors |= service.memory.tensors() | {"known": torch.tensor(service.memory.known, dtype=torch.long)}
    if service.scaler is not None:
        tensors |= {f"scaler.{name}": torch.from_numpy(held) for name, held in vars(service.scaler).items()}
    if (size := sum(held.numel() * held.element_size() for held in tensors.values())) > LARGEST_FILE:
        raise InputError(
            f"state {path} would have {size:,} bytes, of which {LARGEST_FILE:,} can be read; divide the users"
        )
    about = {
        "agent": full_label(service.agent),
        "options": asdict(service.options),
        "problems": problems,
        "asked": service.asked,
        "learned": service.learned,
        "columns": service.columns,
        "arms": service.memory.shape.arms if isinstance(service.memory, Rows) else 0,
    }
    tidy_beside(path)
    write_atomically(path, with_checksum(save({name: held.contiguous() for name, held in tensors.items()}), about))


def _rounds(users: dict[int, User]) -> dict[str, Tensor]:
    """Where users stand, and what waits for its reward."""
    waiting = [(name, at, held) for name, user in users.items() for at, held in user.open.items()]
    masked = [held.offered for *_, held in waiting if held.offered is not None]
    fixed = {name: torch.from_numpy(user.arms) for name, user in users.items() if user.arms is not None}
    return {
        "users": _table([[name, user.round, user.given_up] for name, user in users.items()], 3),
        "open": _table([[name, at, held.arm, held.offered is not None] for name, at, held in waiting], 4),
        **joined("open.features", [held.features for *_, held in waiting]),
        **joined("open.offered", masked),
        "fixed": torch.tensor(list(fixed), dtype=torch.long),
        **joined("fixed.features", list(fixed.values())),
    }


def _table(rows: list[list[Any]], columns: int) -> Tensor:
    return torch.tensor(rows, dtype=torch.long).view(-1, columns)


def restore_service(agent: Agent, path: Path) -> tuple[Service, int | None]:
    """A service as it was saved, with the same agent, and for how many problems."""
    try:
        tensors, text = read_tensors(path, load)
        about = parse_object(text)
        if about.get("agent") != full_label(agent):
            raise InputError(
                f"state {path} is of agent '{about.get('agent')!s:.200}', not of '{full_label(agent)}'; make that agent"
            )
        try:
            service = Service(agent, Options(**about["options"]))
            problems = about["problems"]
            if problems is not None:
                require_count("problems", problems)
            _take(service, tensors, about, problems or 1)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
            raise BrokenFile(f"{error!s:.80}".partition("\n")[0] + ": missing or of another kind") from None
    except (BrokenFile, OSError) as error:
        raise InputError(f"state {path} is broken ({error}); delete it and begin anew with online()") from None
    return service, problems


def _take(service: Service, tensors: dict[str, Tensor], about: dict[str, Any], problems: int) -> None:
    service.asked, service.learned = _count(about["asked"]), _count(about["learned"])
    service.columns = _count(about["columns"], most=10**6)
    for name, round, given_up in _whole_numbers(tensors["users"], 3, problems):
        if name in service.users or given_up > round:
            raise ValueError("its users cannot be")
        service.users[name] = User(round, given_up)
    if service.options.scale and "known" in tensors:
        service.scaler = _scaler({name: tensors[f"scaler.{name}"] for name in vars(Scaler.fresh(0))}, service.columns)
    if "known" not in tensors:  # nothing has been played
        return
    width = service.width(service.columns)
    known = [name for (name,) in _whole_numbers(tensors["known"].unsqueeze(1), 1, problems)]
    if len(set(known)) < len(known):
        raise ValueError("its users cannot be")
    service.memory = service.begun(max(1, _count(about["arms"], most=10**5)), width)
    with one_thread(), torch.inference_mode():
        service.memory.take(known, tensors)
    _take_open(service, tensors, width, problems)
    fixed = _whole_numbers(tensors["fixed"].unsqueeze(1), 1, problems)
    tables = parted("fixed.features", tensors, len(fixed), torch.float64, LARGEST)
    for (name,), features in zip(fixed, tables, strict=True):
        service.users[name].arms = features.numpy()


def _take_open(service: Service, tensors: dict[str, Tensor], width: int, problems: int) -> None:
    keys = _whole_numbers(tensors["open"], 4, 2**62)
    offered = iter(parted("open.offered", tensors, sum(key[3] > 0 for key in keys), torch.bool))
    tables = parted("open.features", tensors, len(keys), service.dtype, LARGEST)
    for (name, at, arm, masked), features in zip(keys, tables, strict=True):
        mask, user = next(offered) if masked else None, service.users[name]
        sound = features.ndim == 2 and features.shape[1] == width and arm < len(features) and 1 <= at <= user.round
        sound = sound and (mask is None or (mask.shape == features.shape[:1] and bool(mask[arm])))
        if not sound or at in user.open or (user.open and at < next(reversed(user.open))):
            raise ValueError("it holds rounds that cannot be")
        user.open[at] = Open(features, mask, arm)


def _whole_numbers(table: Tensor, columns: int, most: int) -> list[list[int]]:
    """Rows of numbers from 0, the first of each below `most`."""
    if table.dtype != torch.long or table.ndim != 2 or table.shape[1] != columns:
        raise ValueError("its tables have other sizes or types than they should")
    if bool((table < 0).any()) or bool((table[:, 0] >= most).any()):
        raise ValueError("its numbers cannot be")
    rows: list[list[int]] = table.tolist()
    return rows


def _scaler(held: dict[str, Tensor], columns: int) -> Scaler:
    sound = all(one.shape == (columns,) and one.dtype == torch.float64 for one in held.values())
    sound = sound and all(bool((one.abs() <= LARGEST_COLUMN**2 * 1e18).all()) for one in held.values())
    if not sound or bool((held["seen"] < 0).any() | (held["squares"] < 0).any()):
        raise ValueError("its means of columns cannot be")
    return Scaler(**{name: one.numpy() for name, one in held.items()})


def _count(value: Any, most: int = 2**62) -> int:
    if not 0 <= (number := whole(value)) <= most:
        raise ValueError(f"{number} cannot be")
    return number
