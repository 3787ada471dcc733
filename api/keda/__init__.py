"""KEDA's own way to ask for a number: a gRPC service that it calls an external scaler."""
