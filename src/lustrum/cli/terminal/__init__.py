"""What the command line shows: decisions, policies, studies, certificates and audits."""
