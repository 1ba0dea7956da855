# Trino, with the Java that it needs.
ARG PARENT
FROM ${PARENT}
ARG TRINO_JAVA
RUN set -eu; \
    apt-get update -qq; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      -o DPkg::Options::=--force-unsafe-io "$TRINO_JAVA" >/dev/null; \
    rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log
ADD trino.tar /opt/trino/current/
COPY kit /
USER nobody
