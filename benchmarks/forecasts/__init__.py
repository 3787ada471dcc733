"""How good forecasts are beside those of others."""
