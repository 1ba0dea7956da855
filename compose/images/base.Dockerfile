# Debian, Python, Java and the accounts: what every container of the stack has.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
ARG JAVA
# Those of services.yml, in its order.
ARG ACCOUNTS
# Numbers that do not change: the files in the volumes belong to them.
RUN set -eu; \
    groupadd --gid 10000 lakehouse; \
    uid=10001; \
    for user in $ACCOUNTS; do \
      useradd --uid "$uid" --gid lakehouse --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$user"; \
      uid=$((uid + 1)); \
    done; \
    useradd --uid 10010 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin analyst; \
    groupadd --gid 10011 postgres; \
    useradd --uid 10011 --gid postgres --no-create-home --home-dir /var/lib/postgresql --shell /bin/sh postgres; \
    apt-get update -qq; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      -o DPkg::Options::=--force-unsafe-io ca-certificates python3 tzdata "$JAVA" >/dev/null; \
    rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log; \
    ln -sf /usr/share/zoneinfo/Etc/UTC /etc/localtime
# All configuration comes from one folder that is mounted when a container starts, so that none is in an image.
RUN set -eu; \
    rm -rf /etc/systemd/system; mkdir -p /etc/systemd /config; \
    for name in hadoop hive spark trino flink python-clients lakehouse systemd/system; do \
      ln -s "/config/etc/$name" "/etc/$name"; \
    done; \
    for name in trino flink flink-sql lakehouse-python; do \
      ln -s "/config/usr/local/bin/$name" "/usr/local/bin/$name"; \
    done; \
    install -d -o root -g lakehouse -m 0755 /var/lib/lakehouse /var/lib/lakehouse/hdfs; \
    install -d -o hdfs -g lakehouse -m 0700 /var/lib/lakehouse/hdfs/namenode /var/lib/lakehouse/hdfs/datanode; \
    install -d -o root -g lakehouse -m 0770 /var/lib/lakehouse/hadoop-tmp; \
    install -d -o postgres -g postgres -m 0700 /var/lib/lakehouse/postgresql; \
    install -d -o spark -g lakehouse -m 0770 /var/lib/lakehouse/spark /var/lib/lakehouse/spark/work \
      /var/lib/lakehouse/spark/local; \
    install -d -o trino -g lakehouse -m 0750 /var/lib/lakehouse/trino; \
    install -d -o flink -g lakehouse -m 0770 /var/lib/lakehouse/flink /var/lib/lakehouse/flink/tmp \
      /var/lib/lakehouse/flink/history
ENV LANG=C.UTF-8 TZ=Etc/UTC
