# PostgreSQL, HDFS, the Hive Metastore and Spark.
ARG PARENT
FROM ${PARENT}
COPY pipeline /opt/pipeline/
COPY kit /
USER nobody
