"""The floor of `make bench`: what the kit has made of bare nodes, made of them again by plain shell commands.

`look` takes from nodes that the kit has just converged what it has put there, and what is true of them then.
`plan` says by which steps the same comes onto bare nodes, and `carry_out` does each as soon as it can be
done, on all nodes side by side; it returns when the same is true. No data is taken: the NameNode is
formatted, the databases are made anew. Secrets are, and never leave the memory of this program.
"""

from __future__ import annotations

from lakehouse.dev.floor.steps import carry_out, plan
from lakehouse.dev.floor.taking import Kit, look

__all__ = ["Kit", "carry_out", "look", "plan"]
