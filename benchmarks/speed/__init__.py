"""How long things take, one program each."""
