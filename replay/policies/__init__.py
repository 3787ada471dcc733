"""The rivals, one policy per file, each reproducing its original step for step."""
