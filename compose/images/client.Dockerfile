# What people work with: Spark, the Python clients and the Trino program.
ARG PARENT
FROM ${PARENT}
USER root
ADD python_clients.tar /opt/python-clients/current/
ADD trino_cli.tar /opt/trino-cli/current/
COPY clients /opt/python-clients/module/
COPY kit /
USER nobody
