"""Bounds with proofs that anybody can check without the solver that found them."""

from lustrum.audit.certificate.document import Certificate, Claim, End, knowledge_digest
from lustrum.audit.certificate.make import certify
from lustrum.audit.certificate.verify import ProvenCell, Report, verify, verify_file

__all__ = [
    "Certificate", "Claim", "End", "ProvenCell", "Report", "certify", "knowledge_digest",
    "verify", "verify_file",
]  # fmt: skip
