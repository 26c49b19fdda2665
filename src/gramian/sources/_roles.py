"""Which column is what: chosen by name, or by number counted from 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

__all__ = ["Name", "Roles", "assign", "find", "several"]

Name = str | int


@dataclass(frozen=True)
class Roles:
    """Columns, counted from 0: those that are fitted, in order, and those that are not."""

    features: list[int]
    target: int | None = None
    label: int | None = None
    id: int | None = None


def several(names: Name | Sequence[Name] | None) -> list[Name]:
    """Return one name, or several, as a list."""
    if names is None:
        return []
    return [names] if isinstance(names, str | int) else list(names)


def find(names: Sequence[str], wanted: Name, role: str, *, named: bool = True) -> int:
    """Return the number, from 0, of a column given by name, or by its number from 1.

    Digits in a text are a name where the columns have names, and a number where they have none.

    Examples
    --------
    >>> find(["age", "height"], "height", "target"), find(["age", "height"], 1, "target")
    (1, 0)
    """
    if isinstance(wanted, str) and wanted in names:
        return list(names).index(wanted)
    if isinstance(wanted, int) or (not named and wanted.isdigit() and wanted.isascii()):
        j = int(wanted)
        if 1 <= j <= len(names):
            return j - 1
        raise ValueError(f"{role}: no column {wanted}; there are {len(names)}, counted from 1.")
    folded = {name.casefold(): name for name in names}
    near = get_close_matches(wanted.casefold(), list(folded), n=3, cutoff=0.5)
    shown = ", ".join(folded[n] for n in near) if near else ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    raise ValueError(f"{role}: no column {wanted!r}; {'near it: ' if near else 'the columns are '}{shown}.")


def assign(
    names: Sequence[str],
    *,
    columns: Name | Sequence[Name] | None,
    drop: Name | Sequence[Name],
    target: Name | None,
    label: Name | None,
    id: Name | None,
    row_names: int | None = None,
    named: bool = True,
) -> Roles:
    """Give each column its role; one that has several is refused.

    ``row_names`` is a column that names the rows in the file itself: it is the id unless another is named.
    """
    roles = {"target": target, "label": label, "id": id}
    found = {role: None if name is None else find(names, name, role, named=named) for role, name in roles.items()}
    asked = [find(names, name, "columns", named=named) for name in several(columns)]
    dropped = {find(names, name, "drop", named=named) for name in several(drop)}
    apart = {j: role for role, j in found.items() if j is not None}
    for j in sorted((set(asked) | dropped) & set(apart)):
        where = "columns" if j in asked else "drop"
        raise ValueError(f"column {names[j]!r} is the {apart[j]} and in {where}; name it once.")
    if set(asked) & dropped:
        raise ValueError(f"column {names[min(set(asked) & dropped)]!r} is in columns and in drop; name it once.")
    aside = {row_names} if columns is None else set()
    if found["id"] is None and row_names not in asked and row_names not in apart and row_names not in dropped:
        found["id"] = row_names
    order = list(dict.fromkeys(asked)) if columns is not None else list(range(len(names)))
    features = [j for j in order if j not in dropped and j not in apart and j not in aside]
    if not features:
        raise ValueError("no column is left to fit: columns=, drop=, target=, label= and id= take them all.")
    return Roles(features, **found)
