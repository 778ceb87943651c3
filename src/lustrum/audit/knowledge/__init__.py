"""What a reader knows: linear facts about hidden cells, and how published tables become such facts."""
