"""What a user writes on the command line: options, questions, rules and descriptions of files."""
