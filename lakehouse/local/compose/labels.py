"""Labels of the stack's containers: docker compose sets the first three, compose/compose.yaml the others."""

from __future__ import annotations

PROJECT_LABEL = "com.docker.compose.project"
SERVICE_LABEL = "com.docker.compose.service"
FOLDER_LABEL = "com.docker.compose.project.working_dir"
# What plays a host of the inventory runs as long as the stack is up; steps and programs have no such label.
HOST_LABEL = "lakehouse.host"
UNIT_LABEL = "lakehouse.unit"
