"""Who may ask: bearer tokens, reviews by Kubernetes, TLS, names of the service, and limits on connections."""
