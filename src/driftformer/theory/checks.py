"""Every statement of the proof that is built, checked against the exact algorithm: one row of a table each."""

from driftformer.theory import checks_of_parts, checks_of_wholes
from driftformer.theory.table import CHECKS, Row, Scale, run_checks

__all__ = ["CHECKS", "Row", "Scale", "checks_of_parts", "checks_of_wholes", "run_checks"]
