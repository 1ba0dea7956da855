"""Local nodes and docker compose: a lakehouse in containers of this computer."""
