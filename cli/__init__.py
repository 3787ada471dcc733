"""The console script `lagcast`: the only place where parts are wired together."""
