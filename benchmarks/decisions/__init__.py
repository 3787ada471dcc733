"""What decisions cost beside those of others: the tournament of policies, and what it is played with."""
