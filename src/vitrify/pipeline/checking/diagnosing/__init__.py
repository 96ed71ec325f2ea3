"""Plain diagnoses of a model that an NPU does not take: what the cause is, what it costs, which command mends it.

A rule speaks of one node; a diagnosis speaks of the file. Each stands in a file of its own and registers itself.
"""

from vitrify.pipeline.checking.diagnosing.diagnosis import Case, Diagnosis, Kind, diagnose, kinds

__all__ = ["Case", "Diagnosis", "Kind", "diagnose", "kinds"]
