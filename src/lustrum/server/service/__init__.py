"""What the pages and the API share: what can be asked, how an answer is made, jobs and suggestions."""
