"""The lakehouse as containers of docker compose: images, configuration, and the stack."""
