# What people work with: Spark, the Python clients and the Trino program, pictures and notebooks.
ARG PARENT
FROM ${PARENT}
RUN set -eu; \
    apt-get update -qq; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      -o DPkg::Options::=--force-unsafe-io python3-matplotlib python3-ipykernel jupyter-notebook >/dev/null; \
    rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log
# The notebook is Debian's, as its packages are; what is computed in it finds the Python clients.
RUN set -eu; \
    kernel=/usr/local/share/jupyter/kernels/python3; mkdir -p "$kernel"; \
    echo '{"argv": ["lakehouse-python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],' \
      '"display_name": "Lakehouse", "language": "python"}' >"$kernel/kernel.json"; \
    install -d -o spark -g lakehouse -m 0770 /work
# The accounts have no home; programs keep their settings in the volume of the work.
ENV HOME=/work
ADD python_clients.tar /opt/python-clients/current/
ADD trino_cli.tar /opt/trino-cli/current/
COPY clients /opt/python-clients/module/
COPY pipeline /opt/pipeline/
COPY kit /
USER nobody
