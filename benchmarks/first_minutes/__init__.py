"""The first five minutes of somebody who has a Kafka, a Prometheus and an empty folder, timed by stage."""
