"""KEDA's external scaler: a gRPC service from which KEDA requests the due replicas."""
