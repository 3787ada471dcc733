"""KEDA's own way to request a number: a gRPC service that it calls an external scaler."""
