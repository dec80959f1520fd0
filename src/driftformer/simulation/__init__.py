"""The one place where environments and agents meet: rollouts, their regret, chunks of work and stored results."""
