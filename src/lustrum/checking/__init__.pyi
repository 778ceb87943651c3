from .folder import CheckerFolder as CheckerFolder
from .folder import SessionOutput as SessionOutput
from .joint import JointAudit as JointAudit
from .joint import OutputDifference as OutputDifference
from .joint import SmallGroup as SmallGroup
from .rules import OutputRules as OutputRules
from .session import Session as Session
