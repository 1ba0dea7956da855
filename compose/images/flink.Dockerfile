# Flink, and the Hadoop client that it reaches HDFS with.
ARG PARENT
FROM ${PARENT}
ADD flink.tar /opt/flink/current/
RUN ln -s /etc/flink /opt/flink/current/conf
COPY kit /
USER nobody
