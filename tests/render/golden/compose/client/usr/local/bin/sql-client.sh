#!/bin/sh
# Managed by the lakehouse kit: a change made here is lost at the next run.
export FLINK_CONF_DIR=/etc/flink
export FLINK_PLUGINS_DIR=/opt/flink/current/plugins
export HADOOP_CLASSPATH='/etc/hadoop:/opt/flink/current/hadoop/*'
export HADOOP_CONF_DIR=/etc/hadoop
export JAVA_HOME=/usr/lib/jvm/java-21-openjdk-amd64
# The program is told it already.
[ "${1:-}" != embedded ] || shift
exec /usr/lib/jvm/java-21-openjdk-amd64/bin/java @/etc/flink/java.options -Dlog4j2.configurationFile=/etc/flink/log4j-cli.properties \
  -cp "/opt/flink/current/lib/*:/opt/flink/current/sql-client/*:$HADOOP_CLASSPATH" \
  org.apache.flink.table.client.SqlClient embedded \
  -Dsql-gateway.endpoint.rest.bind-address=localhost \
  -Dtable.catalog-store.kind=generic_in_memory \
  --init /etc/flink/init.sql "$@"
