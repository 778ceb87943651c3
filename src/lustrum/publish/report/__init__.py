"""The agency's report of a protected population: confidential, as a page of its own and as JSON."""

from lustrum.publish.report.findings import Findings, findings
from lustrum.publish.report.page import write_report

__all__ = ["Findings", "findings", "write_report"]
