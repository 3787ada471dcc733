"""Optional: takes published recommendations and patches /scale. Imports nothing of ours but `api.schemas`."""
