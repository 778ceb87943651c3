"""Maps of risk against utility: true tables in, a method for the policy out."""
