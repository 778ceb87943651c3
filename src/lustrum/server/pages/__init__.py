"""The pages: catalogue, builder, variables and answers."""
