"""Bounds with proofs that anybody can check without the solver that found them.

=========================  =========================================================================
:func:`certify`            the range of cells, each end with a table that reaches it and a proof
:class:`Certificate`       the document: knowledge, tables, claims; written as JSON
:func:`verify`             checks a document in whole numbers, with nothing but the standard library
:func:`knowledge_digest`   which knowledge a certificate must be about
=========================  =========================================================================
"""

from lustrum.audit.certificate.document import Certificate, Claim, End, knowledge_digest
from lustrum.audit.certificate.make import certify
from lustrum.audit.certificate.verify import ProvenCell, Report, verify, verify_file

__all__ = [
    "Certificate",
    "Claim",
    "End",
    "ProvenCell",
    "Report",
    "certify",
    "knowledge_digest",
    "verify",
    "verify_file",
]
