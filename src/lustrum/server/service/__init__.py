"""What both doors share: what can be asked, how an answer is made, jobs and suggestions."""
